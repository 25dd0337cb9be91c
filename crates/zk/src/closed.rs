//! Whether a namespace belongs to the user of a login alone, and its repair.
//!
//! Access lists are not inherited, and a znode keeps the list with which it was created. A process that created the chroot or a
//! parent before the first node decides who may change it, also after the namespace is in use. So a session with a login
//! refuses a namespace in which a permanent znode (the chroot, the parents, the buckets, the epoch and the settings) gives
//! another identity more than read access, or its own less than all.
//!
//! The check does not read the lists of records, of which there may be a million. A user of the login creates every
//! record closed; [`repair`] also finds those that others created before.
//!
//! The check reads the list of a bucket or sub-bucket only if that list may differ from the one of its creation. Their stats, which
//! 12 requests read, show that it cannot differ if all of this holds:
//!
//! * The list of the topmost parent is right.
//! * No list on the path from that parent to the bucket was ever changed (`aversion` is 0). So only users whom the parent's list
//!   permits, those of the login, can have created the bucket.
//! * The bucket is older than `/layout`, the last znode that a node creates in a new namespace.
//!
//! One bucket of each sort is always read, because the roles may have changed since. The check does not notice a bucket that a user of
//! the login created manually with another list before the first node. `bellwether access check` reads every list.
//!
//! With logins by role, each list must give the roles their permissions, and everyone else at most read access.
//!
//! What if a reply is lost: the check is repeated with the next session. A repair that lost a reply is started again; to set
//! an access list twice changes nothing.

use std::collections::HashSet;

use bellwether_core::budget::{MAX_IN_FLIGHT, MAX_STAT_BATCH};
use bellwether_core::path::{self, Bucket, SubBucket};
use futures::future::try_join_all;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use zookeeper_client::{Acl, Acls, Error, MultiReadResult, Permission, Stat};

use crate::access::Access;
use crate::error::{ReadError, read_error};
use crate::exposure::Exposed;
use crate::roles::Difference;
use crate::session::Zk;

/// How far a namespace belongs to the user of a login alone, or to the users of its roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Closed {
    /// Only the user has access to its permanent znodes.
    Entirely,
    /// Others may read this znode, and change none.
    ReadableByOthers(Exposed),
    /// These znodes can be changed by others, or not by the user.
    Not(Vec<Exposed>),
}

/// The permissions beyond reading.
const CHANGES: [Permission; 4] =
    [Permission::WRITE, Permission::CREATE, Permission::DELETE, Permission::ADMIN];

/// Who counts as the user of a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Own {
    /// The user with its present or former password.
    AlsoFormer,
    Present,
}

/// Compares a list with one that allows everything to the user of a login and nothing to others.
fn difference(list: &[Acl], access: &Access, own: Own) -> Option<Difference> {
    let is_own = |entry: &&Acl| {
        let id = entry.auth_id();
        access.is_own(id) || own == Own::AlsoFormer && access.is_former(id)
    };
    let (own, mut others): (Vec<_>, Vec<_>) = list.iter().partition(is_own);
    others.retain(|entry| !access.may_be_certificate(entry.auth_id()));
    // Only the scheme and the user: the digest of a password is not for logs.
    let told = |entry: &&Acl| {
        let user = entry.id().split(':').next().unwrap_or_default();
        format!("{}:{user} may {}", entry.scheme(), entry.permission())
    };
    let changes = |entry: &&&Acl| CHANGES.into_iter().any(|change| entry.permission().has(change));
    if let Some(entry) = others.iter().find(changes) {
        return Some(Difference::Changeable(told(entry)));
    }
    let all = own.iter().fold(Permission::NONE, |may, entry| may | entry.permission());
    if all != Permission::ALL {
        return Some(Difference::Changeable(format!("this user may only {all}")));
    }
    others.first().map(|entry| Difference::Readable(told(entry)))
}

/// Checks the permanent znodes of the namespace of a session with a login.
///
/// # Errors
/// When the connection was lost.
pub async fn closed(zk: &Zk) -> Result<Closed, ReadError> {
    let settings =
        [path::EPOCH, path::LEADING, path::LAYOUT, path::FAILOVER, path::RETENTION, path::PLACEMENT];
    let fixed = ["/"].into_iter().chain(path::PARENTS).chain(settings).map(str::to_owned);
    let mut found = differences(zk, fixed.collect()).await?;
    let buckets = doubtful_buckets(zk, &found).await?;
    found.extend(differences(zk, buckets).await?);
    let mut readable = None;
    let mut changeable = Vec::new();
    for (path, difference) in found {
        let path = absolute(zk, &path);
        match difference {
            Difference::Changeable(may) => changeable.push(Exposed { path, may }),
            Difference::Readable(may) => readable = readable.or(Some(Exposed { path, may })),
        }
    }
    Ok(match (changeable.is_empty(), readable) {
        (false, _) => Closed::Not(changeable),
        (true, Some(readable)) => Closed::ReadableByOthers(readable),
        (true, None) => Closed::Entirely,
    })
}

/// Reads the lists of these znodes, and returns how they differ.
async fn differences(zk: &Zk, paths: Vec<String>) -> Result<Vec<(String, Difference)>, ReadError> {
    let looks = stream::iter(paths).map(|path| look(zk, path, Own::AlsoFormer)).buffered(MAX_IN_FLIGHT);
    looks.try_filter_map(async |found| Ok(found)).try_collect().await
}

/// The buckets and sub-buckets whose lists must be read: those that may not have the list of their creation, and one of each sort.
/// `wrong` has the parents whose lists differ.
async fn doubtful_buckets(zk: &Zk, wrong: &[(String, Difference)]) -> Result<Vec<String>, ReadError> {
    let kinds = [Bucket::jobs, Bucket::lanes, Bucket::groups, Bucket::members];
    let tops = [path::JOBS, path::LANES, path::GROUPS, path::MEMBERS].map(str::to_owned);
    let buckets = kinds.into_iter().flat_map(|path| Bucket::all().map(path));
    let buckets = buckets.chain(SubBucket::all().map(SubBucket::path)).collect::<Vec<_>>();
    let layout = stats(zk, &[path::LAYOUT.to_owned()]).await?.pop().flatten();
    let mut original = HashSet::new();
    // Parents come first.
    let paths = [&tops[..], &buckets].concat();
    for (path, stat) in paths.iter().zip(stats(zk, &paths).await?) {
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        let is_below_original = match parent {
            "" => wrong.iter().all(|(wrong, _)| wrong != path),
            parent => original.contains(parent),
        };
        let is_unchanged = |stat: Stat| {
            stat.aversion == 0 && layout.as_ref().is_some_and(|layout| stat.czxid < layout.czxid)
        };
        if is_below_original && stat.is_some_and(is_unchanged) {
            original.insert(path.as_str());
        }
    }
    let first = kinds.into_iter().flat_map(|path| Bucket::all().map(path).next());
    let first = first.chain(SubBucket::all().map(SubBucket::path).next()).collect::<HashSet<_>>();
    let is_doubtful = |path: &&String| first.contains(*path) || !original.contains(path.as_str());
    Ok(buckets.iter().filter(is_doubtful).cloned().collect())
}

/// The stats of znodes, in order; `None` for those that are absent or that the user may not read.
async fn stats(zk: &Zk, paths: &[String]) -> Result<Vec<Option<Stat>>, ReadError> {
    let batches = paths.chunks(MAX_STAT_BATCH).map(|few| {
        let few = few.to_vec();
        zk.read(few.len(), |client| async move {
            let mut reader = client.new_multi_reader();
            for path in &few {
                reader.add_get_data(path)?;
            }
            let stat = |result| match result {
                MultiReadResult::Data { stat, .. } => Some(stat),
                _ => None,
            };
            Ok(reader.commit().await?.into_iter().map(stat).collect::<Vec<_>>())
        })
    });
    Ok(try_join_all(batches).await?.concat())
}

/// Returns how the list of a znode differs. A znode that an operator deleted has none.
async fn look(zk: &Zk, path: String, own: Own) -> Result<Option<(String, Difference)>, ReadError> {
    match zk.client().get_acl(&path).await {
        Ok((list, _)) => {
            let difference = match zk.access().known_roles() {
                Some(roles) => roles.difference(&path, &list),
                None => difference(&list, zk.access(), own),
            };
            Ok(difference.map(|difference| (path, difference)))
        }
        Err(Error::NoNode) => Ok(None),
        Err(Error::NoAuth) => {
            let none = Difference::Changeable("this user may not read its access list".to_owned());
            Ok(Some((path, none)))
        }
        Err(error) => Err(read_error(&error)),
    }
}

fn absolute(zk: &Zk, path: &str) -> String {
    match (zk.client().path(), path) {
        ("/", path) => path.to_owned(),
        (chroot, "/") => chroot.to_owned(),
        (chroot, path) => format!("{chroot}{path}"),
    }
}

/// What [`repair`] did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repaired {
    /// Znodes of the namespace.
    pub znodes: usize,
    /// Those whose list differs from one for the user alone, before the repair.
    pub differed: usize,
    /// Some of those, the first ones in the order of the walk.
    pub examples: Vec<Exposed>,
}

/// Examples in [`Repaired`].
const EXAMPLES: usize = 10;

/// Visits every znode of the chroot, its root first, and with `change` closes those that are not closed to others.
///
/// The znodes of ZooKeeper itself are left alone if the chroot is `/`. A znode that is created by another user in the
/// meantime may stay open: stop all processes of the namespace first.
///
/// # Errors
/// When the connection was lost or the user may not change an access list: the znodes so far are closed.
pub async fn repair(zk: &Zk, change: bool) -> Result<Repaired, ReadError> {
    let mut done = Repaired::default();
    let mut waiting = vec!["/".to_owned()];
    while !waiting.is_empty() {
        let batch = waiting.split_off(waiting.len().saturating_sub(MAX_IN_FLIGHT));
        // Closed before its children are listed: nothing can be created below it afterwards.
        let visited = stream::iter(batch).map(|path| visit(zk, path, change)).buffered(MAX_IN_FLIGHT);
        for visited in visited.try_collect::<Vec<_>>().await?.into_iter().flatten() {
            done.znodes += 1;
            if let Some(exposed) = visited.exposed {
                done.differed += 1;
                if done.examples.len() < EXAMPLES {
                    done.examples.push(exposed);
                }
            }
            waiting.extend(visited.children);
        }
    }
    Ok(done)
}

struct Visited {
    exposed: Option<Exposed>,
    children: Vec<String>,
}

async fn visit(zk: &Zk, path: String, change: bool) -> Result<Option<Visited>, ReadError> {
    let exposed = look(zk, path.clone(), Own::Present).await?.map(|(path, difference)| {
        let (Difference::Readable(may) | Difference::Changeable(may)) = difference;
        Exposed { path: absolute(zk, &path), may }
    });
    if exposed.is_some() && change {
        match zk.client().set_acl(&path, &Acls::new(&zk.access().closed_list(&path)), None).await {
            Ok(_) => {}
            Err(Error::NoNode) => return Ok(None),
            Err(error) => return Err(read_error(&error)),
        }
    }
    match zk.client().list_children(&path).await {
        Ok(names) => {
            let below = path.trim_end_matches('/');
            let foreign = |path: &str| zk.client().path() == "/" && path == "/zookeeper";
            let children = names.into_iter().map(|name| format!("{below}/{name}"));
            Ok(Some(Visited { exposed, children: children.filter(|path| !foreign(path)).collect() }))
        }
        Err(Error::NoNode) => Ok(None),
        Err(error) => Err(read_error(&error)),
    }
}

#[cfg(test)]
mod tests {
    use zookeeper_client::AuthId;

    use super::*;
    use crate::access::Scheme;

    /// `echo -n bellwether:hunter2 | openssl sha1 -binary | base64`.
    const OWN: &str = "bellwether:xa+ayMWDFdQpO9PXZdwnN9shmI0=";

    fn told(scheme: Scheme, entries: &[(Permission, &str, &str)]) -> &'static str {
        let access = Access::login(scheme, "bellwether", "hunter2");
        let list = entries.iter().map(|(may, scheme, id)| Acl::new(*may, AuthId::new(scheme, id)));
        match difference(&list.collect::<Vec<_>>(), &access, Own::Present) {
            None => "closed",
            Some(Difference::Readable(_)) => "readable",
            Some(Difference::Changeable(_)) => "changeable",
        }
    }

    #[test]
    fn only_the_identity_of_the_login_may_change_a_closed_znode() {
        let digest = |entries: &[_]| told(Scheme::Digest, entries);
        let own = (Permission::ALL, "digest", OWN);
        let read = (Permission::READ, "world", "anyone");
        assert_eq!(digest(&[own]), "closed");
        assert_eq!(digest(&[own, read]), "readable");
        for stranger in [
            ("world", "anyone"),
            ("digest", "bellwether:another"),
            ("digest", "bellwether"),
            ("digest", "x"),
            ("ip", "127.0.0.1"),
            ("sasl", "bellwether"),
        ] {
            for change in [Permission::ALL, Permission::CREATE, Permission::ADMIN | Permission::READ] {
                assert_eq!(digest(&[own, (change, stranger.0, stranger.1)]), "changeable", "{stranger:?}");
            }
        }
        for without in [&[][..], &[read], &[(Permission::READ | Permission::WRITE, "digest", OWN)]] {
            assert_eq!(digest(without), "changeable", "{without:?}");
        }
        assert_eq!(told(Scheme::SaslDigestMd5, &[(Permission::ALL, "sasl", "bellwether")]), "closed");
        assert_eq!(told(Scheme::SaslDigestMd5, &[(Permission::ALL, "sasl", "other")]), "changeable");
        assert_eq!(told(Scheme::SaslDigestMd5, &[own]), "changeable");
    }

    /// So that a namespace can be used while its password is changed, and a repair finds the old entries.
    #[test]
    fn the_identity_of_a_former_password_counts_only_if_it_is_asked_for() {
        let access = Access::login(Scheme::Digest, "bellwether", "new");
        let access = access.former_password("hunter2");
        let list = [Acl::new(Permission::ALL, AuthId::new("digest", OWN))];
        assert!(difference(&list, &access, Own::AlsoFormer).is_none());
        assert!(matches!(difference(&list, &access, Own::Present), Some(Difference::Changeable(_))));
    }

    /// The same text in another scheme is another identity.
    #[test]
    fn the_scheme_is_part_of_the_identity() {
        for (login, scheme, id) in [
            (Scheme::Digest, "sasl", OWN),
            (Scheme::Digest, "ip", OWN),
            (Scheme::SaslDigestMd5, "digest", "bellwether"),
            (Scheme::SaslDigestMd5, "x509", "bellwether"),
        ] {
            assert_eq!(told(login, &[(Permission::ALL, scheme, id)]), "changeable", "{login} {scheme}");
        }
    }
}

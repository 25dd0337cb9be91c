//! Who may do what: identities of connections, lists of znodes, and the schemes that match them.

mod ip;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine as _;
use sha1::{Digest as _, Sha1};

use crate::proto::{Acl, ErrorCode, Id};

/// The permissions' bits.
pub(super) mod permission {
    pub(in crate::model) const READ: i32 = 1;
    pub(in crate::model) const WRITE: i32 = 2;
    pub(in crate::model) const CREATE: i32 = 4;
    pub(in crate::model) const DELETE: i32 = 8;
    pub(in crate::model) const ADMIN: i32 = 16;
    pub(in crate::model) const ALL: i32 = READ | WRITE | CREATE | DELETE | ADMIN;
}

const WORLD: &str = "world";
const ANYONE: &str = "anyone";
const AUTH: &str = "auth";
const DIGEST: &str = "digest";
const IP: &str = "ip";
const SUPER: &str = "super";

/// The longest list of a znode, and the most that one connection's identities may weigh, so that `auth` always fits
/// where it is alone: some 80 digests. The store writes a znode's list with each change of the znode, and a multi of
/// one frame changes up to 25,000 znodes, which this keeps to 100 MB. The real server has no bound but its memory.
const ACL_BYTES: usize = 4 * 1024;

/// What an entry weighs: as on the wire.
fn weight(id: &Id) -> usize {
    3 * size_of::<i32>() + id.scheme.len() + id.id.len()
}

/// Lists that znodes share.
#[derive(Debug, Default)]
pub(super) struct AclPool {
    lists: BTreeSet<Arc<[Acl]>>,
    /// How many lists may gather before those that no znode has are looked for.
    sweep_at: usize,
}

/// Below so many lists a sweep is not worth its name.
const SMALLEST_SWEEP: usize = 1024;

impl AclPool {
    /// The list that `asked` comes to for these identities; see [`Identities::resolve`].
    pub(super) fn resolve(
        &mut self,
        identities: &Identities,
        asked: &[Acl],
    ) -> Result<Arc<[Acl]>, ErrorCode> {
        // A list of some znode has been resolved, and comes to itself: nearly every znode has one of few lists.
        match self.lists.get(asked) {
            Some(shared) => Ok(Arc::clone(shared)),
            None => identities.resolve(asked).map(|resolved| self.intern(resolved)),
        }
    }

    pub(super) fn intern(&mut self, acl: Vec<Acl>) -> Arc<[Acl]> {
        if let Some(shared) = self.lists.get(acl.as_slice()) {
            return Arc::clone(shared);
        }
        if self.lists.len() >= self.sweep_at.max(SMALLEST_SWEEP) {
            self.lists.retain(|list| Arc::strong_count(list) > 1);
            self.sweep_at = self.lists.len() * 2;
        }
        let shared: Arc<[Acl]> = acl.into();
        self.lists.insert(Arc::clone(&shared));
        shared
    }

    /// Anyone may do anything.
    pub(super) fn open(&mut self) -> Arc<[Acl]> {
        self.intern(vec![world(permission::ALL)])
    }

    /// Anyone may read.
    pub(super) fn read_only(&mut self) -> Arc<[Acl]> {
        self.intern(vec![world(permission::READ)])
    }
}

fn world(permissions: i32) -> Acl {
    Acl { permissions, id: Id { scheme: WORLD.to_owned(), id: ANYONE.to_owned() } }
}

/// Who a connection is. It begins with its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identities {
    peer: IpAddr,
    ids: Vec<Id>,
}

impl Identities {
    pub(super) fn of_peer(peer: IpAddr) -> Self {
        let peer = peer.to_canonical();
        Self { peer, ids: vec![Id { scheme: IP.to_owned(), id: peer.to_string() }] }
    }

    fn is_super(&self) -> bool {
        self.ids.iter().any(|id| id.scheme == SUPER)
    }

    /// `false` when it is one too many.
    fn add(&mut self, id: Id) -> bool {
        if self.ids.contains(&id) {
            return true;
        }
        let fits = self.ids.iter().map(weight).sum::<usize>() + weight(&id) <= ACL_BYTES;
        if fits {
            self.ids.push(id);
        }
        fits
    }

    /// Adds what `auth` proves; `false` when this server does not know the scheme, or the connection has all the
    /// identities that it may have.
    pub(super) fn authenticate(&mut self, scheme: &str, auth: &[u8], super_digest: Option<&str>) -> bool {
        match scheme {
            DIGEST => {
                let digest = digest(&String::from_utf8_lossy(auth));
                (super_digest != Some(digest.as_str())
                    || self.add(Id { scheme: SUPER.to_owned(), id: String::new() }))
                    && self.add(Id { scheme: DIGEST.to_owned(), id: digest })
            }
            // Its address is known already.
            IP => true,
            _ => false,
        }
    }

    /// What `whoAmI` tells: names without their secrets.
    pub(super) fn names(&self) -> Vec<Id> {
        self.ids
            .iter()
            .map(|Id { scheme, id }| {
                let name = if scheme == DIGEST { id.split(':').next().unwrap_or_default() } else { id };
                Id { scheme: scheme.clone(), id: name.to_owned() }
            })
            .collect()
    }

    /// Whether the list gives one of these identities one of the permissions.
    pub(super) fn may(&self, permissions: i32, acl: &[Acl]) -> bool {
        acl.is_empty()
            || acl.iter().any(|entry| entry.permissions & permissions != 0 && self.matches(&entry.id))
            || self.is_super()
    }

    fn matches(&self, id: &Id) -> bool {
        match id.scheme.as_str() {
            WORLD => id.id == ANYONE,
            DIGEST => self.ids.iter().any(|own| own.scheme == DIGEST && own.id == id.id),
            IP => ip::matches(self.peer, &id.id),
            _ => false,
        }
    }

    pub(super) fn may_read(&self, acl: &[Acl]) -> bool {
        self.may(permission::READ, acl)
    }

    /// [`may`](Self::may), as a request sees it.
    pub(super) fn check(&self, permissions: i32, acl: &[Acl]) -> Result<(), ErrorCode> {
        if self.may(permissions, acl) { Ok(()) } else { Err(ErrorCode::NoAuth) }
    }

    /// The list as a znode will have it: without doubles, `auth` replaced by who asks, nothing in it that no scheme
    /// could ever match, and no longer than [`ACL_BYTES`].
    fn resolve(&self, asked: &[Acl]) -> Result<Vec<Acl>, ErrorCode> {
        let mut resolved: Vec<Acl> = Vec::new();
        let (mut seen, mut bytes) = (BTreeSet::new(), 0);
        for entry in asked {
            if !seen.insert(entry) {
                continue;
            }
            let from = resolved.len();
            let Id { scheme, id } = &entry.id;
            match scheme.as_str() {
                WORLD if id == ANYONE => resolved.push(entry.clone()),
                AUTH => {
                    let proven = self.ids.iter().filter(|id| id.scheme == DIGEST);
                    resolved.extend(proven.map(|id| Acl { permissions: entry.permissions, id: id.clone() }));
                    if resolved.len() == from {
                        return Err(ErrorCode::InvalidAcl);
                    }
                }
                DIGEST if is_digest(id) => resolved.push(entry.clone()),
                IP if ip::is_valid(id) => resolved.push(entry.clone()),
                _ => return Err(ErrorCode::InvalidAcl),
            }
            bytes += resolved[from..].iter().map(|added| weight(&added.id)).sum::<usize>();
            if bytes > ACL_BYTES {
                return Err(ErrorCode::InvalidAcl);
            }
        }
        if resolved.is_empty() { Err(ErrorCode::InvalidAcl) } else { Ok(resolved) }
    }
}

/// `user:base64(sha1(user:password))`.
fn digest(user_and_password: &str) -> String {
    let user = user_and_password.split(':').next().unwrap_or_default();
    let hash = base64::engine::general_purpose::STANDARD.encode(Sha1::digest(user_and_password));
    format!("{user}:{hash}")
}

/// Two parts with a colon between them; as Java splits, empty parts at the end do not count.
fn is_digest(id: &str) -> bool {
    id.trim_end_matches(':').split(':').count() == 2
}

/// The list as those see it who may not administer the znode: without the digests.
pub(super) fn redacted(acl: &[Acl]) -> Vec<Acl> {
    acl.iter()
        .map(|entry| {
            let mut entry = entry.clone();
            if entry.id.scheme == DIGEST
                && let Some(colon) = entry.id.id.find(':')
            {
                entry.id.id.truncate(colon);
                entry.id.id.push_str(":x");
            }
            entry
        })
        .collect()
}

//! The self-check of access lists: what anyone may change.
//!
//! Access lists are not inherited. A namespace is closed only if each of its znodes is. So the check looks not only
//! at the root but also at all parents, which an operator who closes a namespace manually may forget. It also looks
//! at `/`, where a client that may create znodes could create a namespace before the nodes do.

use bellwether_core::path;
use futures::future::try_join_all;
use zookeeper_client::{Acl, AuthId, Client, Error, Permission};

use crate::error::{ReadError, read_error};
use crate::session::Zk;

/// A znode that others may change.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exposed {
    /// Its path from `/`.
    pub path: String,
    /// The permissions: of anyone, `WRITE|CREATE|DELETE`, `ALL`; or an identity and its permissions.
    pub may: String,
}

/// Lists the znodes that anyone may change, of the ensemble's root, the root of the namespace and its parts.
///
/// # Errors
/// When the connection was lost. A znode whose access list cannot be read is considered closed.
pub async fn exposed(zk: &Zk) -> Result<Vec<Exposed>, ReadError> {
    let root = zk.client().clone().chroot("/").expect("/ is a valid root");
    let chroot = zk.client().path();
    let mut paths = vec!["/".to_owned()];
    if chroot != "/" {
        paths.push(chroot.to_owned());
    }
    let below = chroot.trim_end_matches('/');
    paths.extend(parts().map(|path| format!("{below}{path}")));
    let lists = try_join_all(paths.iter().map(|path| list(&root, path))).await?;
    let exposed = paths.into_iter().zip(lists).filter_map(|(path, list)| {
        let may = changes(&list?)?;
        Some(Exposed { path, may: may.to_string() })
    });
    Ok(exposed.collect())
}

/// Whether anyone has all permissions on every part of the namespace.
pub(crate) async fn everywhere(zk: &Zk) -> Result<bool, ReadError> {
    let client = zk.client();
    let lists = try_join_all(parts().map(|path| list(client, path))).await?;
    Ok(lists.iter().all(|list| list.as_ref().is_some_and(|list| anyone(list) == Permission::ALL)))
}

fn parts() -> impl Iterator<Item = &'static str> {
    path::PARENTS.into_iter().chain([path::EPOCH, path::LEADING, path::LAYOUT])
}

/// The access list of a znode; `None` if it may not be read or the znode does not exist.
async fn list(client: &Client, path: &str) -> Result<Option<Vec<Acl>>, ReadError> {
    match client.get_acl(path).await {
        Ok((list, _)) => Ok(Some(list)),
        Err(Error::NoAuth | Error::NoNode) => Ok(None),
        Err(error) => Err(read_error(&error)),
    }
}

/// The permissions of anyone.
fn anyone(list: &[Acl]) -> Permission {
    let open = list.iter().filter(|entry| *entry.auth_id() == AuthId::anyone());
    open.fold(Permission::NONE, |may, entry| may | entry.permission())
}

/// The permissions of anyone, if they include more than reading.
fn changes(list: &[Acl]) -> Option<Permission> {
    let may = anyone(list);
    let change = [Permission::WRITE, Permission::CREATE, Permission::DELETE, Permission::ADMIN];
    change.into_iter().any(|permission| may.has(permission)).then_some(may)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[(Permission, &str, &str)]) -> Vec<Acl> {
        entries.iter().map(|(may, scheme, id)| Acl::new(*may, AuthId::new(scheme, id))).collect()
    }

    #[test]
    fn only_what_anyone_may_change_is_exposed() {
        let mine = (Permission::ALL, "digest", "bellwether:hash");
        let read = (Permission::READ, "world", "anyone");
        for closed in [&[mine][..], &[mine, read], &[read], &[]] {
            assert_eq!(changes(&list(closed)), None, "{closed:?}");
        }
        for change in [Permission::WRITE, Permission::CREATE, Permission::DELETE, Permission::ADMIN] {
            assert_eq!(changes(&list(&[mine, (change, "world", "anyone")])), Some(change));
        }
        let both = changes(&list(&[read, (Permission::DELETE, "world", "anyone")])).unwrap();
        assert_eq!(both.to_string(), "READ|DELETE");
    }
}

//! What anyone may do: the self-check of access lists.
//!
//! Access lists are not inherited. A namespace is closed when each of its znodes is, so more than its root is looked
//! at: the parents of everything, which an operator who closes a namespace by hand is as likely to forget. And above
//! it `/`, where whoever may create can take the place of a namespace that is not there yet.

use bellwether_core::path;
use futures::future::try_join_all;
use zookeeper_client::{Acl, AuthId, Client, Error, Permission};

use crate::error::{ReadError, read_error};
use crate::session::Zk;

/// A znode that anyone may change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exposed {
    /// Where it is, as seen from `/`.
    pub path: String,
    /// What anyone may do: `WRITE|CREATE|DELETE`, `ALL`.
    pub may: String,
}

/// Of the ensemble's root, the namespace's and the namespace's parts, those that anyone may change.
///
/// # Errors
/// When the connection was lost. What may not be looked at is closed.
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

/// Whether anyone may do anything with every part of the namespace.
pub(crate) async fn everywhere(zk: &Zk) -> Result<bool, ReadError> {
    let client = zk.client();
    let lists = try_join_all(parts().map(|path| list(client, path))).await?;
    Ok(lists.iter().all(|list| list.as_ref().is_some_and(|list| anyone(list) == Permission::ALL)))
}

fn parts() -> impl Iterator<Item = &'static str> {
    path::PARENTS.into_iter().chain([path::EPOCH, path::LAYOUT])
}

/// `None` for one that may not be looked at, or is not there.
async fn list(client: &Client, path: &str) -> Result<Option<Vec<Acl>>, ReadError> {
    match client.get_acl(path).await {
        Ok((list, _)) => Ok(Some(list)),
        Err(Error::NoAuth | Error::NoNode) => Ok(None),
        Err(error) => Err(read_error(&error)),
    }
}

/// What anyone may do.
fn anyone(list: &[Acl]) -> Permission {
    let open = list.iter().filter(|entry| *entry.auth_id() == AuthId::anyone());
    open.fold(Permission::NONE, |may, entry| may | entry.permission())
}

/// What anyone may do, if that is more than to read.
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

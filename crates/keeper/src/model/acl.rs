//! Access control: identities of connections, ACLs of znodes, and the schemes that match them.

mod ip;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine as _;
use sha1_smol::Sha1;

use crate::proto::{Acl, ErrorCode, Id};

/// Permission bits.
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

/// Limit of the ACL of a znode, and of the identities of one connection, about 80 digests, so that an ACL with the
/// single entry `auth` always fits. The store writes a znode's ACL with each change of the znode. A multi in one frame
/// changes up to 25,000 znodes, so the limit keeps that at 100 MB. ZooKeeper has no limit except memory.
const ACL_BYTES: usize = 4 * 1024;

/// Returns the size of an entry on the wire.
fn weight(id: &Id) -> usize {
    3 * size_of::<i32>() + id.scheme.len() + id.id.len()
}

/// ACLs shared by znodes.
#[derive(Debug, Default)]
pub(super) struct AclPool {
    lists: BTreeSet<Arc<[Acl]>>,
    /// The number of ACLs at which unused ones are removed.
    sweep_at: usize,
}

/// Below this number of ACLs, a sweep is not worth its cost.
const SMALLEST_SWEEP: usize = 1024;

impl AclPool {
    /// Returns the resolved ACL for these identities; see [`Identities::resolve`].
    pub(super) fn resolve(
        &mut self,
        identities: &Identities,
        asked: &[Acl],
    ) -> Result<Arc<[Acl]>, ErrorCode> {
        // An ACL in the pool is already resolved and resolves to itself; nearly every znode has one of a few ACLs.
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

    /// Returns the ACL with all permissions for anyone.
    pub(super) fn open(&mut self) -> Arc<[Acl]> {
        self.intern(vec![world(permission::ALL)])
    }

    /// Returns the ACL with the read permission for anyone.
    pub(super) fn read_only(&mut self) -> Arc<[Acl]> {
        self.intern(vec![world(permission::READ)])
    }
}

fn world(permissions: i32) -> Acl {
    Acl { permissions, id: Id { scheme: WORLD.to_owned(), id: ANYONE.to_owned() } }
}

/// The identities of a connection. The first one is its address.
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

    /// Adds an identity; returns `false` if it exceeds the limit.
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

    /// Adds the identity proven by `auth`; returns `false` if the scheme is unknown or the identities exceed their
    /// limit.
    pub(super) fn authenticate(&mut self, scheme: &str, auth: &[u8], super_digest: Option<&str>) -> bool {
        match scheme {
            DIGEST => {
                let digest = digest(&String::from_utf8_lossy(auth));
                (super_digest != Some(digest.as_str())
                    || self.add(Id { scheme: SUPER.to_owned(), id: String::new() }))
                    && self.add(Id { scheme: DIGEST.to_owned(), id: digest })
            }
            // The address is always an identity.
            IP => true,
            _ => false,
        }
    }

    /// Returns the identities for `whoAmI`, without secrets.
    pub(super) fn names(&self) -> Vec<Id> {
        self.ids
            .iter()
            .map(|Id { scheme, id }| {
                let name = if scheme == DIGEST { id.split(':').next().unwrap_or_default() } else { id };
                Id { scheme: scheme.clone(), id: name.to_owned() }
            })
            .collect()
    }

    /// Returns whether the ACL grants one of the permissions to one of these identities.
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

    /// As [`may`](Self::may), with the error code for a request.
    pub(super) fn check(&self, permissions: i32, acl: &[Acl]) -> Result<(), ErrorCode> {
        if self.may(permissions, acl) { Ok(()) } else { Err(ErrorCode::NoAuth) }
    }

    /// Returns the ACL for a znode: without duplicates, with `auth` replaced by the caller's digests, with valid
    /// entries only, and within [`ACL_BYTES`].
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

/// Returns `user:base64(sha1(user:password))`.
fn digest(user_and_password: &str) -> String {
    let user = user_and_password.split(':').next().unwrap_or_default();
    let hash =
        base64::engine::general_purpose::STANDARD.encode(Sha1::from(user_and_password).digest().bytes());
    format!("{user}:{hash}")
}

/// Returns whether `id` has two parts separated by a colon. As in Java's `split`, empty parts at the end do not count.
fn is_digest(id: &str) -> bool {
    id.trim_end_matches(':').split(':').count() == 2
}

/// Returns the ACL for clients without the admin permission: without the hashes of digests.
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

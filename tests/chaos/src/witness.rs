//! The multis that the proxies saw. ZooKeeper's log has no paths of rejected multis; this module provides them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bellwether_core::path;
use bellwether_testkit::{Proxy, Request, op};

use crate::jute::Reader;

/// The relevant content of a multi.
#[derive(Debug, Clone)]
pub(crate) struct Multi {
    /// The code, the path from the server's root, and the expected version of each operation.
    pub(crate) ops: Vec<(i32, String, Option<i32>)>,
}

impl Multi {
    /// Returns the epoch that a leader's multi checks.
    pub(crate) fn epoch(&self) -> Option<i32> {
        let (code, path, version) = self.ops.first()?;
        (*code == op::CHECK && path.ends_with(path::EPOCH)).then_some(*version)?
    }

    /// Returns whether it is a worker's report, which closes attempts and does not check the epoch.
    pub(crate) fn reports(&self) -> bool {
        self.epoch().is_none() && self.ops.iter().any(|(_, path, _)| path.contains("/assignments/"))
    }

    /// Describes an operation.
    pub(crate) fn describe(&self, index: usize) -> String {
        match self.ops.get(index) {
            None => format!("operation {index}"),
            Some((code, path, version)) => {
                let name = match *code {
                    op::CHECK => "check",
                    op::CREATE | op::CREATE2 | op::CREATE_CONTAINER => "create",
                    op::DELETE => "delete",
                    op::SET_DATA => "set",
                    _ => "operation",
                };
                let version = version.map(|version| format!(" at version {version}")).unwrap_or_default();
                format!("{name} {path}{version}")
            }
        }
    }
}

/// Stores every multi that passes a proxy.
#[derive(Debug, Clone, Default)]
pub(crate) struct Witness {
    /// By session and xid.
    sent: Arc<Mutex<BTreeMap<(i64, i32), Multi>>>,
}

impl Witness {
    /// Starts to observe a proxy.
    pub(crate) fn watch(&self, proxy: &Proxy) {
        let sent = Arc::clone(&self.sent);
        proxy.witness(move |session, request| {
            if request.op == op::MULTI
                && let Some(multi) = parse(request)
            {
                sent.lock().unwrap_or_else(PoisonError::into_inner).insert((session, request.xid), multi);
            }
        });
    }

    /// Returns all multis so far.
    pub(crate) fn multis(&self) -> BTreeMap<(i64, i32), Multi> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn parse(request: &Request<'_>) -> Option<Multi> {
    let mut reader = Reader(request.body);
    let mut ops = Vec::new();
    loop {
        let (code, done, _error) = (reader.int()?, reader.bytes(1)? == [1], reader.int()?);
        if done {
            return Some(Multi { ops });
        }
        let path = reader.text()?;
        let version = match code {
            op::CHECK | op::DELETE => Some(reader.int()?),
            op::SET_DATA => {
                reader.buffer()?;
                Some(reader.int()?)
            }
            op::CREATE | op::CREATE2 | op::CREATE_CONTAINER => {
                reader.buffer()?;
                reader.acl()?;
                reader.int()?;
                None
            }
            _ => return None,
        };
        ops.push((code, path, version.filter(|version| *version >= 0)));
    }
}

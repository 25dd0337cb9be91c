//! Reads, and the watches that they leave.

use super::ConnectionId;
use super::acl::{Identities, permission, redacted};
use super::node::{Node, count};
use super::path;
use super::tree::Tree;
use super::watch::{Modes, Watches};
use crate::proto::{Acl, ErrorCode, OpResult, Request, Stat};

/// What a multi-read may answer, as it lies in memory. A frame of a megabyte can ask 50,000 times for the same
/// megabyte.
const MULTI_READ_BYTES: usize = 32 * 1024 * 1024;

/// Who reads.
pub(super) struct Reader<'a> {
    pub(super) tree: &'a Tree,
    pub(super) watches: &'a mut Watches,
    pub(super) connection: ConnectionId,
    pub(super) identities: &'a Identities,
}

impl<'a> Reader<'a> {
    fn readable(&self, path: &str) -> Result<&'a Node, ErrorCode> {
        let node = self.tree.get(path).ok_or(ErrorCode::NoNode)?;
        self.identities.check(permission::READ, &node.acl)?;
        Ok(node)
    }

    fn watch(&mut self, watch: bool, path: &str, modes: Modes) {
        if watch {
            self.watches.add(path, self.connection, modes);
        }
    }

    /// The one read that asks for no right, and leaves its watch even where there is nothing.
    pub(super) fn exists(&mut self, path: &str, watch: bool) -> Result<Stat, ErrorCode> {
        if path.contains('\0') {
            return Err(ErrorCode::BadArguments);
        }
        self.watch(watch, path, Modes::DATA);
        self.tree.get(path).map(Node::stat).ok_or(ErrorCode::NoNode)
    }

    pub(super) fn get_data(&mut self, path: &str, watch: bool) -> Result<&'a Node, ErrorCode> {
        let node = self.readable(path)?;
        self.watch(watch, path, Modes::DATA);
        Ok(node)
    }

    pub(super) fn get_children(&mut self, path: &str, watch: bool) -> Result<(Vec<String>, Stat), ErrorCode> {
        let node = self.readable(path)?;
        self.watch(watch, path, Modes::CHILD);
        let mut names = node.children().map(|child| path::name(child).to_owned()).collect::<Vec<_>>();
        names.sort_unstable();
        Ok((names, node.stat()))
    }

    pub(super) fn count_descendants(&self, path: &str) -> Result<i32, ErrorCode> {
        self.readable(path)?;
        Ok(count(self.tree.descendants(path)))
    }

    /// Administrators see the list, readers see it without the digests.
    pub(super) fn get_acl(&self, path: &str) -> Result<(Vec<Acl>, Stat), ErrorCode> {
        let node = self.tree.get(path).ok_or(ErrorCode::NoNode)?;
        self.identities.check(permission::READ | permission::ADMIN, &node.acl)?;
        let acl = if self.identities.may(permission::ADMIN, &node.acl) {
            node.acl.to_vec()
        } else {
            redacted(&node.acl)
        };
        Ok((acl, node.stat()))
    }

    /// The session's own ephemeral znodes whose paths begin so.
    pub(super) fn ephemerals(&self, session: i64, prefix: &str) -> Vec<String> {
        let all = matches!(prefix.trim(), "" | "/");
        let own = self.tree.ephemerals_of(session);
        own.filter(|path| all || path.starts_with(prefix)).map(|path| path.as_ref().to_owned()).collect()
    }

    /// Each read for itself: one that fails does not keep the others from being answered. None leaves a watch,
    /// whatever it asks: the real server drops that flag.
    ///
    /// Beyond [`MULTI_READ_BYTES`] the whole request is refused, where the real server runs out of memory.
    pub(super) fn multi(&mut self, reads: &[Request]) -> Result<Vec<OpResult>, ErrorCode> {
        let mut results = Vec::with_capacity(reads.len());
        let mut bytes = 0;
        for read in reads {
            let result = self.one_of_multi(read).unwrap_or_else(|code| OpResult::Error(code.number()));
            bytes += size_of::<OpResult>() + bulk(&result);
            if bytes > MULTI_READ_BYTES {
                return Err(ErrorCode::BadArguments);
            }
            results.push(result);
        }
        Ok(results)
    }

    fn one_of_multi(&mut self, read: &Request) -> Result<OpResult, ErrorCode> {
        if let Request::GetData { path, watch: _ } = read {
            let node = self.get_data(path, false)?;
            Ok(OpResult::GetData { data: node.data.clone(), stat: node.stat() })
        } else if let Request::GetChildren { path, watch: _, stat: _ } = read {
            self.get_children(path, false).map(|(names, _stat)| OpResult::GetChildren(names))
        } else {
            // Nothing else is decoded out of a multi-read; a driver that makes one up is told so.
            Err(ErrorCode::MarshallingError)
        }
    }
}

/// The part of a result that can be large.
fn bulk(result: &OpResult) -> usize {
    match result {
        OpResult::GetData { data, .. } => data.as_ref().map_or(0, |data| data.len()),
        OpResult::GetChildren(names) => names.iter().map(|name| size_of::<String>() + name.len()).sum(),
        // Of a write, which is in no multi-read, or an error.
        OpResult::Create { .. }
        | OpResult::Create2 { .. }
        | OpResult::Delete
        | OpResult::SetData(_)
        | OpResult::Check
        | OpResult::Error(_) => 0,
    }
}

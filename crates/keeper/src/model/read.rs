//! Reads, and the watches that they set.

use super::acl::{Identities, permission, redacted};
use super::node::{Node, count};
use super::path;
use super::tree::Tree;
use super::watch::{Modes, Watches};
use super::{Compat, ConnectionId};
use crate::proto::{Acl, ErrorCode, OpResult, Request, Stat};

/// Limit of the result of a multi-read in memory. A request of 1 MB can read the same megabyte 50,000 times.
const MULTI_READ_BYTES: usize = 32 * 1024 * 1024;

/// A read on behalf of a connection.
pub(super) struct Reader<'a> {
    pub(super) tree: &'a Tree,
    pub(super) watches: &'a mut Watches,
    pub(super) connection: ConnectionId,
    pub(super) identities: &'a Identities,
    pub(super) compat: Compat,
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

    /// Sets its watch even if the znode does not exist. Since 3.9 a znode that the client may not read is refused, and
    /// the watch is not set (ZOOKEEPER-2590). The permissions of its parent never matter.
    pub(super) fn exists(&mut self, path: &str, watch: bool) -> Result<Stat, ErrorCode> {
        if path.contains('\0') {
            return Err(ErrorCode::BadArguments);
        }
        let node = self.tree.get(path);
        match (self.compat, node) {
            (Compat::V3_9, Some(node)) => self.identities.check(permission::READ, &node.acl)?,
            (Compat::V3_9, None) | (Compat::V3_8_0, _) => {}
        }
        self.watch(watch, path, Modes::DATA);
        node.map(Node::stat).ok_or(ErrorCode::NoNode)
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

    /// Returns the ACL. Without the admin permission, the hashes of digests are hidden.
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

    /// Returns the session's ephemeral znodes whose paths start with `prefix`.
    pub(super) fn ephemerals(&self, session: i64, prefix: &str) -> Vec<String> {
        // Java's `trim` removes control characters, and no white space above U+0020.
        let all = matches!(prefix.trim_matches(|character| character <= ' '), "" | "/");
        let own = self.tree.ephemerals_of(session);
        own.filter(|path| all || path.starts_with(prefix)).map(|path| path.as_ref().to_owned()).collect()
    }

    /// Executes each read separately: a failed read does not affect the others. As in a real server, the watch flag of
    /// each read is ignored.
    ///
    /// A result above [`MULTI_READ_BYTES`] fails the whole request, where a real server runs out of memory.
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
            // The decoder accepts no other reads, but the driver can construct them.
            Err(ErrorCode::MarshallingError)
        }
    }
}

/// Returns the size of the part of a result that can be large.
fn bulk(result: &OpResult) -> usize {
    match result {
        OpResult::GetData { data, .. } => data.as_ref().map_or(0, |data| data.len()),
        OpResult::GetChildren(names) => names.iter().map(|name| size_of::<String>() + name.len()).sum(),
        // Results of writes, which are not in multi-reads, or errors.
        OpResult::Create { .. }
        | OpResult::Create2 { .. }
        | OpResult::Delete
        | OpResult::SetData(_)
        | OpResult::Check
        | OpResult::Error(_) => 0,
    }
}

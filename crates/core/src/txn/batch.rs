//! Many jobs' transactions as one multi.
//!
//! A multi costs one log write however many operations it has, so throughput is a matter of batching. But it
//! fails as a whole at its first bad operation; [`Batch::locate`] tells whose that was, so that the caller can
//! take that one out and send the rest again.

use super::{Op, Subject};
use crate::budget::{MAX_TXN_BYTES, MAX_TXN_OPS};

/// Operations that must all hold, then one group of operations per key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Batch<K> {
    fence: Vec<Op>,
    groups: Vec<(K, Vec<Op>)>,
    ops: usize,
    bytes: usize,
}

/// Whose operation failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Locus {
    /// The fence's.
    Fence(Subject),
    /// A group's.
    Group {
        /// The group's position.
        group: usize,
        /// The operation's position in it.
        op: usize,
        /// What the operation is about.
        subject: Subject,
    },
}

impl<K> Batch<K> {
    /// An empty batch behind a fence, which may itself be empty.
    #[must_use]
    pub fn new(fence: Vec<Op>) -> Self {
        let (ops, bytes) = (fence.len(), fence.iter().map(Op::bytes).sum());
        Self { fence, groups: Vec::new(), ops, bytes }
    }

    /// Adds a group, or gives it back when the batch would break a budget with it. The first group always fits:
    /// the largest record is within the byte budget.
    ///
    /// # Errors
    /// The group, when the batch is full.
    pub fn push(&mut self, key: K, group: Vec<Op>) -> Result<(), (K, Vec<Op>)> {
        let bytes = group.iter().map(Op::bytes).sum::<usize>();
        let full = self.ops + group.len() > MAX_TXN_OPS || self.bytes + bytes > MAX_TXN_BYTES;
        if full && !self.groups.is_empty() {
            return Err((key, group));
        }
        self.ops += group.len();
        self.bytes += bytes;
        self.groups.push((key, group));
        Ok(())
    }

    /// Changes the groups' operations, which are to stay as many as they are. What they gain in bytes must be little: the budget
    /// was looked at before.
    pub fn rewrite(&mut self, mut rewrite: impl FnMut(&K, &mut Vec<Op>)) {
        for (key, ops) in &mut self.groups {
            let (before, count) = (ops.iter().map(Op::bytes).sum::<usize>(), ops.len());
            rewrite(key, ops);
            debug_assert_eq!(ops.len(), count, "an operation is located by its place");
            self.bytes = self.bytes - before + ops.iter().map(Op::bytes).sum::<usize>();
        }
    }

    /// How many groups it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether it has no group.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// All operations in order, for one multi.
    pub fn ops(&self) -> impl Iterator<Item = &Op> {
        self.fence.iter().chain(self.groups.iter().flat_map(|(_, ops)| ops))
    }

    /// Whose operation stands at an index of [`Batch::ops`].
    #[must_use]
    pub fn locate(&self, at: usize) -> Option<Locus> {
        if let Some(op) = self.fence.get(at) {
            return Some(Locus::Fence(op.subject()));
        }
        let mut at = at - self.fence.len();
        for (group, (_, ops)) in self.groups.iter().enumerate() {
            if let Some(op) = ops.get(at) {
                return Some(Locus::Group { group, op: at, subject: op.subject() });
            }
            at -= ops.len();
        }
        None
    }

    /// Takes a group out.
    pub fn remove(&mut self, group: usize) -> (K, Vec<Op>) {
        let (key, ops) = self.groups.remove(group);
        self.ops -= ops.len();
        self.bytes -= ops.iter().map(Op::bytes).sum::<usize>();
        (key, ops)
    }

    /// The keys in order.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.groups.iter().map(|(key, _)| key)
    }

    /// The groups in order.
    #[must_use]
    pub fn into_groups(self) -> Vec<(K, Vec<Op>)> {
        self.groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delete(path: &str) -> Op {
        Op::Delete { path: path.to_owned(), version: None }
    }

    fn batch() -> Batch<&'static str> {
        let mut batch = Batch::new(vec![delete("/f")]);
        batch.push("a", vec![delete("/a1"), delete("/a2")]).unwrap();
        batch.push("b", vec![delete("/b1")]).unwrap();
        batch
    }

    #[test]
    fn every_operation_is_located() {
        let loci = (0..5).map(|at| batch().locate(at)).collect::<Vec<_>>();
        let group = |group, op| Some(Locus::Group { group, op, subject: Subject::Other });
        assert_eq!(loci, [Some(Locus::Fence(Subject::Other)), group(0, 0), group(0, 1), group(1, 0), None]);
    }

    #[test]
    fn the_group_that_failed_is_taken_out_and_the_rest_stays_behind_the_fence() {
        let mut batch = batch();
        assert_eq!(batch.remove(0).0, "a");
        assert_eq!(batch.ops().map(Op::path).collect::<Vec<_>>(), ["/f", "/b1"]);
    }

    #[test]
    fn a_full_batch_gives_the_group_back() {
        let mut batch = Batch::new(vec![delete("/f")]);
        let pushed = (0..MAX_TXN_OPS).take_while(|n| batch.push(*n, vec![delete("/x"); 2]).is_ok()).count();
        assert_eq!(pushed, (MAX_TXN_OPS - 1) / 2);
        assert!(batch.ops().count() <= MAX_TXN_OPS);
        let data = vec![0; MAX_TXN_BYTES];
        let large = Op::Set { path: "/x".into(), data, version: 0 };
        assert!(Batch::new(vec![]).push(0, vec![large.clone()]).is_ok(), "the first always fits");
        assert!(batch.push(0, vec![large]).is_err());
    }
}

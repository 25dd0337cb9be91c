//! Combines the transactions of many jobs into one multi.
//!
//! A multi costs one log write regardless of its number of operations, so batching determines throughput. But a multi
//! fails as a whole at its first rejected operation. [`Batch::locate`] finds the group of that operation, so that the
//! caller can remove this group and send the others again.

use super::{Op, Subject};
use crate::budget::{MAX_TXN_BYTES, MAX_TXN_OPS};

/// A fence, whose operations must all succeed, followed by one group of operations per key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Batch<K> {
    fence: Vec<Op>,
    groups: Vec<(K, Vec<Op>)>,
    ops: usize,
    bytes: usize,
}

/// The owner of a rejected operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Locus {
    /// The fence.
    Fence(Subject),
    /// A group.
    Group {
        /// The position of the group.
        group: usize,
        /// The position of the operation in the group.
        op: usize,
        /// The subject of the operation.
        subject: Subject,
    },
}

impl<K> Batch<K> {
    /// Creates an empty batch with a fence, which may be empty.
    #[must_use]
    pub fn new(fence: Vec<Op>) -> Self {
        let (ops, bytes) = (fence.len(), fence.iter().map(Op::bytes).sum());
        Self { fence, groups: Vec::new(), ops, bytes }
    }

    /// Adds a group, or returns it if the batch would exceed a budget with it. The first group always fits:
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

    /// Changes the operations of each group. Their number must stay the same, and they may grow only by a few bytes,
    /// because the budget is not checked again.
    pub fn rewrite(&mut self, mut rewrite: impl FnMut(&K, &mut Vec<Op>)) {
        for (key, ops) in &mut self.groups {
            let (before, count) = (ops.iter().map(Op::bytes).sum::<usize>(), ops.len());
            rewrite(key, ops);
            debug_assert_eq!(
                ops.len(),
                count,
                "the number of operations must not change: they are located by position"
            );
            self.bytes = self.bytes - before + ops.iter().map(Op::bytes).sum::<usize>();
        }
    }

    /// The number of groups.
    #[must_use]
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether the batch has no group.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// All operations in the order of the multi.
    pub fn ops(&self) -> impl Iterator<Item = &Op> {
        self.fence.iter().chain(self.groups.iter().flat_map(|(_, ops)| ops))
    }

    /// The owner of the operation at this index of [`Batch::ops`].
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

    /// Removes a group.
    pub fn remove(&mut self, group: usize) -> (K, Vec<Op>) {
        let (key, ops) = self.groups.remove(group);
        self.ops -= ops.len();
        self.bytes -= ops.iter().map(Op::bytes).sum::<usize>();
        (key, ops)
    }

    /// The keys of the groups in order.
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
    fn removing_the_failed_group_keeps_the_fence_and_the_other_groups() {
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
        assert!(Batch::new(vec![]).push(0, vec![large.clone()]).is_ok(), "the first group always fits");
        assert!(batch.push(0, vec![large]).is_err());
    }

    fn sized(bytes: usize) -> Op {
        let path = "/x".to_owned();
        let empty = Op::Set { path: path.clone(), data: vec![], version: 0 }.bytes();
        Op::Set { path, data: vec![0; bytes - empty], version: 0 }
    }

    #[test]
    fn a_batch_holds_as_many_operations_and_bytes_as_its_budgets_allow() {
        let mut batch = Batch::new(vec![]);
        batch.push(0, vec![delete("/x")]).unwrap();
        assert!(batch.push(1, vec![delete("/x"); MAX_TXN_OPS]).is_err());
        assert_eq!(batch.push(1, vec![delete("/x"); MAX_TXN_OPS - 1]), Ok(()));
        let mut batch = Batch::new(vec![]);
        batch.push(0, vec![sized(MAX_TXN_BYTES - 100)]).unwrap();
        assert!(batch.push(1, vec![sized(101)]).is_err());
        assert_eq!(batch.push(1, vec![sized(100)]), Ok(()));
    }

    #[test]
    fn a_removed_group_and_a_shorter_operation_make_room_for_others() {
        let mut batch = Batch::new(vec![]);
        batch.push(0, vec![sized(100); 2]).unwrap();
        batch.push(1, vec![sized(MAX_TXN_BYTES - 200)]).unwrap();
        assert!(batch.push(2, vec![sized(100)]).is_err());
        batch.rewrite(|key, ops| {
            if *key == 0 {
                ops[0] = sized(80);
            }
        });
        assert!(batch.push(2, vec![sized(100)]).is_err(), "only 20 bytes are free");
        batch.remove(0);
        assert!(batch.push(2, vec![sized(201)]).is_err());
        assert_eq!(batch.push(2, vec![sized(200)]), Ok(()));
        assert!(batch.push(3, vec![sized(70)]).is_err());
        let mut full = Batch::new(vec![]);
        full.push(0, vec![delete("/x"); MAX_TXN_OPS - 1]).unwrap();
        full.push(1, vec![delete("/x")]).unwrap();
        full.remove(0);
        assert!(full.push(2, vec![delete("/x"); MAX_TXN_OPS]).is_err());
        assert_eq!(full.push(2, vec![delete("/x"); MAX_TXN_OPS - 1]), Ok(()));
        let mut full = Batch::new(vec![]);
        full.push(0, vec![delete("/x"); 2]).unwrap();
        full.push(1, vec![delete("/x"); MAX_TXN_OPS - 2]).unwrap();
        full.remove(0);
        assert!(full.push(2, vec![delete("/x"); 3]).is_err());
    }
}

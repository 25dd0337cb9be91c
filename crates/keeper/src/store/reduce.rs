//! A batch, reduced to the last word on each row.
//!
//! 256 writes to one znode are one row. Rows come out sorted by key: neighbours share the pages of a B-tree.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Change, NodeRow, SessionRow};

/// What each touched row ends as; `None` is gone.
#[derive(Debug, Default)]
pub(super) struct Reduced<'a> {
    pub(super) nodes: BTreeMap<&'a str, Option<&'a NodeRow>>,
    /// The null buffer and no row at all are the same to a store: both are no row.
    pub(super) data: BTreeMap<&'a str, Option<&'a Arc<[u8]>>>,
    pub(super) sessions: BTreeMap<i64, Option<&'a SessionRow>>,
}

impl<'a> Reduced<'a> {
    pub(super) fn of(changes: &'a [Change]) -> Self {
        let mut reduced = Self::default();
        for change in changes {
            match change {
                Change::PutNode(path, row) => drop(reduced.nodes.insert(path, Some(row))),
                Change::PutData(path, data) => drop(reduced.data.insert(path, data.as_ref())),
                Change::DeleteNode(path) => {
                    reduced.nodes.insert(path, None);
                    reduced.data.insert(path, None);
                }
                Change::PutSession(id, row) => drop(reduced.sessions.insert(*id, Some(row))),
                Change::DeleteSession(id) => drop(reduced.sessions.insert(*id, None)),
            }
        }
        reduced
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(version: i32) -> NodeRow {
        NodeRow {
            czxid: 1,
            mzxid: 1,
            pzxid: 1,
            ctime: 0,
            mtime: 0,
            version,
            creates: 0,
            aversion: 0,
            ephemeral_owner: 0,
            acl: Arc::from([]),
        }
    }

    fn data(bytes: &[u8]) -> Option<Arc<[u8]>> {
        Some(Arc::from(bytes))
    }

    #[test]
    fn the_last_word_on_a_row_wins() {
        let changes = [Change::PutNode("/a".into(), row(1)), Change::PutNode("/a".into(), row(2))];
        assert_eq!(Reduced::of(&changes).nodes["/a"], Some(&row(2)));
    }

    #[test]
    fn a_znode_deleted_and_made_again_without_data_has_none() {
        let changes = [
            Change::PutData("/a".into(), data(b"old")),
            Change::DeleteNode("/a".into()),
            Change::PutNode("/a".into(), row(0)),
        ];
        let reduced = Reduced::of(&changes);
        assert_eq!(reduced.nodes["/a"], Some(&row(0)));
        assert_eq!(reduced.data["/a"], None);
    }

    #[test]
    fn a_session_that_ended_within_the_batch_is_gone() {
        let session = SessionRow { timeout_ms: 4_000, password: vec![1; 16] };
        let changes = [Change::PutSession(7, session), Change::DeleteSession(7)];
        assert_eq!(Reduced::of(&changes).sessions[&7], None);
    }
}

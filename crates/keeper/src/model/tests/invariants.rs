//! Invariants that hold after every input.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::node::Lifetime;
use crate::model::{Model, path};

/// Panics unless the tree, the child lists, the indexes, the sessions and the connections agree.
pub(super) fn check(model: &Model) {
    let tree = &model.tree;
    let mut bytes = 0;
    let mut ephemerals: BTreeMap<i64, BTreeSet<&str>> = BTreeMap::new();
    let mut perishable = BTreeSet::new();
    let mut listed = 0;
    for (name, node) in tree.iter() {
        let name: &str = name;
        assert!(path::is_valid(name), "{name:?} is not a valid path");
        bytes += (name.len() + node.data_length()) as u64;
        match node.owner.lifetime() {
            Lifetime::Persistent => {}
            Lifetime::Session(session) => {
                assert!(model.sessions.get(session).is_some(), "{name} has no live session");
                assert_eq!(node.child_count(), 0, "{name} is ephemeral and has children");
                ephemerals.entry(session).or_default().insert(name);
            }
            Lifetime::Container | Lifetime::Ttl(_) => {
                perishable.insert(name);
            }
        }
        for child in node.children() {
            assert_eq!(path::ancestors(child).next(), Some(name), "{child} is in the list of another znode");
            assert!(tree.get(child).is_some(), "{child} is listed but does not exist");
            listed += 1;
        }
        assert!(node.czxid <= model.zxid && node.mzxid <= model.zxid && node.pzxid <= model.zxid, "{name}");
    }
    assert_eq!(listed, tree.len() - 1, "every znode except the root is in one list of children");
    assert_eq!(tree.bytes(), bytes);
    assert_eq!(tree.perishable().map(AsRef::as_ref).collect::<BTreeSet<&str>>(), perishable);
    let counted: BTreeMap<i64, usize> = tree.ephemeral_owners().collect();
    assert_eq!(counted, ephemerals.iter().map(|(&session, paths)| (session, paths.len())).collect());
    for (&session, paths) in &ephemerals {
        assert_eq!(&model.ephemerals_of(session).collect::<BTreeSet<_>>(), paths);
    }
    for (&connection, known) in &model.connections {
        let session = model.sessions.get(known.session);
        assert_eq!(
            session.and_then(|session| session.connection),
            Some(connection),
            "session and connection differ"
        );
    }
    for view in model.sessions() {
        if let Some(connection) = view.connection {
            assert_eq!(model.session_of(connection), Some(view.id), "session and connection differ");
        }
    }
    for (connection, _paths) in model.watches.of_connections() {
        assert!(model.connections.contains_key(&connection), "a closed connection has watches");
    }
}

//! The znodes, and multis on them.

use std::collections::BTreeMap;

use bellwether_core::job::JobRecord;
use bellwether_core::name::JobId;
use bellwether_core::outcome::{Reason, Rejection};
use bellwether_core::path::{self, Bucket, SubBucket};
use bellwether_core::port::{ChangeKind, Node, WrappingCount};
use bellwether_core::ready::{ReadyEntry, Shard};
use bellwether_core::time::WallMillis;
use bellwether_core::txn::Op;
use bellwether_core::wire::{self, LAYOUT_VERSION, Layout, Stored};

/// The owner of all ephemeral znodes.
pub(in crate::client) const SESSION: i64 = 7;

/// A changed znode.
pub(super) type Changed = (String, ChangeKind);

pub(in crate::client) struct Tree {
    nodes: BTreeMap<String, Node>,
    zxid: i64,
    /// The server's clock.
    pub(in crate::client) now: WallMillis,
    pub(super) changes: Vec<Changed>,
}

impl Tree {
    /// An empty namespace.
    pub(super) fn new(now: WallMillis) -> Self {
        let mut tree = Self { nodes: BTreeMap::new(), zxid: 0, now, changes: Vec::new() };
        tree.create("/", Vec::new());
        let top = path::PARENTS.into_iter().chain([path::EPOCH, path::LEADING]).map(str::to_owned);
        let buckets = Bucket::all()
            .flat_map(|bucket| [bucket.jobs(), bucket.lanes(), bucket.groups(), bucket.members()])
            .chain(SubBucket::all().map(SubBucket::path));
        let shards = Shard::all().map(path::ready_shard);
        top.chain(buckets).chain(shards).for_each(|path| tree.create(&path, Vec::new()));
        tree.create(path::LAYOUT, wire::encode(&Layout::new(LAYOUT_VERSION)));
        tree.changes.clear();
        tree
    }

    pub(in crate::client) fn get(&self, path: &str) -> Option<Node> {
        self.nodes.get(path).cloned()
    }

    pub(in crate::client) fn decoded<T: Stored>(&self, path: &str) -> T {
        wire::decode(&self.nodes[path].data).unwrap()
    }

    pub(in crate::client) fn children(&self, path: &str) -> Option<Vec<String>> {
        self.nodes.get(path)?;
        let below = format!("{}/", path.trim_end_matches('/'));
        let below = self.nodes.range(below.clone()..).map_while(|(path, _)| path.strip_prefix(&below));
        Some(below.filter(|name| !name.is_empty() && !name.contains('/')).map(str::to_owned).collect())
    }

    /// Creates a znode or replaces its data, as another process would.
    pub(in crate::client) fn put(&mut self, path: &str, data: impl Into<Vec<u8>>) {
        match self.nodes.contains_key(path) {
            true => self.set(path, data.into()),
            false => {
                self.contain(path);
                self.create(path, data.into());
            }
        }
    }

    /// Creates the missing containers of a path.
    fn contain(&mut self, path: &str) {
        if let Some(container) = path::container_of(path)
            && !self.nodes.contains_key(container)
        {
            self.contain(container);
            self.create(container, Vec::new());
        }
    }

    /// The path of the entry of an open job that waits.
    pub(in crate::client) fn entry(&self, job: &JobId) -> String {
        path::ready_entry(&ReadyEntry::of_record(job, &self.decoded::<JobRecord>(&path::record(job))))
    }

    /// Changes a stored record, as another process would.
    pub(in crate::client) fn update<T: Stored>(&mut self, path: &str, change: impl FnOnce(T) -> T) {
        let changed = change(self.decoded(path));
        self.set(path, wire::encode(&changed));
    }

    /// Changes the record of a waiting job and moves its entry to the place that follows from the record.
    pub(in crate::client) fn update_waiting(
        &mut self,
        job: &JobId,
        change: impl FnOnce(JobRecord) -> JobRecord,
    ) {
        let entry = self.entry(job);
        self.update(&path::record(job), change);
        self.delete(&entry);
        let moved = self.entry(job);
        self.put(&moved, *b"");
    }

    pub(in crate::client) fn delete(&mut self, path: &str) {
        self.nodes.remove(path).expect("the znode exists");
        self.nodes.get_mut(parent(path)).expect("a znode has a parent").children -= 1;
        self.changes.push((path.to_owned(), ChangeKind::Deleted));
    }

    /// Deletes a znode and everything below it.
    pub(in crate::client) fn remove_all(&mut self, path: &str) {
        for name in self.children(path).unwrap_or_default() {
            self.remove_all(&format!("{path}/{name}"));
        }
        self.delete(path);
    }

    /// Sets the parts of a znode's stat that no write of a test sets.
    pub(in crate::client) fn stat(&mut self, path: &str, change: impl FnOnce(&mut Node)) {
        change(self.nodes.get_mut(path).expect("the znode exists"));
    }

    /// Applies all operations or none.
    pub(in crate::client) fn apply(&mut self, ops: &[Op]) -> Result<(), Rejection> {
        let (mut before, changes) = (Vec::new(), self.changes.len());
        for (at, op) in ops.iter().enumerate() {
            self.note(op.path(), &mut before);
            if let Err(reason) = self.apply_one(op) {
                for (path, node) in before.into_iter().rev() {
                    match node {
                        Some(node) => drop(self.nodes.insert(path, node)),
                        None => drop(self.nodes.remove(&path)),
                    }
                }
                self.changes.truncate(changes);
                return Err(Rejection { at, reason });
            }
        }
        Ok(())
    }

    /// Notes the znodes that an operation at this path may change: itself, and those above it, whose numbers of children change and which
    /// it may create.
    fn note(&self, path: &str, before: &mut Vec<(String, Option<Node>)>) {
        before.push((path.to_owned(), self.get(path)));
        if path != "/" {
            self.note(parent(path), before);
        }
    }

    fn apply_one(&mut self, op: &Op) -> Result<(), Reason> {
        let there = self.nodes.get(op.path());
        match op {
            Op::Create { .. } if there.is_some() => return Err(Reason::NodeExists),
            Op::Create { path, data, .. } => {
                self.contain(path);
                if !self.nodes.contains_key(parent(path)) {
                    return Err(Reason::NoNode);
                }
                self.create(path, data.clone());
            }
            Op::Check { version, .. } => check(there, Some(*version))?,
            Op::Set { path, data, version } => {
                check(there, Some(*version))?;
                self.set(path, data.clone());
            }
            Op::Delete { path, version } => {
                check(there, *version)?;
                if there.is_some_and(|node| node.children > 0) {
                    return Err(Reason::NotEmpty);
                }
                self.delete(path);
            }
        }
        Ok(())
    }

    fn create(&mut self, path: &str, data: Vec<u8>) {
        self.zxid += 1;
        if path != "/" {
            let parent = self.nodes.get_mut(parent(path)).unwrap_or_else(|| panic!("{path} has a parent"));
            parent.children += 1;
            parent.children_ever = parent.children_ever.plus(WrappingCount::of(1));
        }
        let node = Node {
            data,
            version: 0,
            owner: if path.starts_with(path::WORKERS) { SESSION } else { 0 },
            created: self.zxid,
            written: self.zxid,
            modified: self.now,
            children: 0,
            children_ever: WrappingCount::default(),
        };
        self.nodes.insert(path.to_owned(), node);
        self.changes.push((path.to_owned(), ChangeKind::Created));
    }

    fn set(&mut self, path: &str, data: Vec<u8>) {
        self.zxid += 1;
        let node = self.nodes.get_mut(path).expect("the znode exists");
        let (version, written, modified) = (node.version + 1, self.zxid, self.now);
        *node = Node { data, version, written, modified, ..node.clone() };
        self.changes.push((path.to_owned(), ChangeKind::DataChanged));
    }
}

pub(super) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map(|(parent, _)| parent).filter(|parent| !parent.is_empty()).unwrap_or("/")
}

/// As ZooKeeper: the version -1 is any.
fn check(there: Option<&Node>, version: Option<i32>) -> Result<(), Reason> {
    let node = there.ok_or(Reason::NoNode)?;
    let is_any = version.is_none_or(|version| version == -1);
    if is_any || version == Some(node.version) { Ok(()) } else { Err(Reason::BadVersion) }
}

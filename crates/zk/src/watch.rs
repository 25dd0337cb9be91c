//! Watches. They are hints only: after an event, read again and compare.
//!
//! * A [`Watch`] reports every change below a path until the connection is lost. The client library does not restore it
//!   on reconnection (its SetWatches2 is never sent), and changes during the gap are lost in any case (ZOOKEEPER-4698).
//!   So at every reconnection the owner creates a new watch, *then* drops the old one, then reads everything again.
//! * A [`Glance`] reports one change. It is restored on reconnection, and then fires for a change during the gap. The
//!   restoring request must stay under 128 KiB of paths, or the client never reconnects: use a few per worker, never
//!   one per job. Do not use both kinds on one path (ZOOKEEPER-4466).

use bellwether_core::path;
use futures::FutureExt;
use zookeeper_client::{AddWatchMode, EventType, OneshotWatcher, PersistentWatcher, WatchedEvent};

use crate::error::ReadError;
use crate::session::Zk;

/// Most changes returned at a time. It limits a message, not the stream.
const MAX_CHANGES: usize = 4_096;

pub use bellwether_core::port::{Change, ChangeKind};

/// A recursive watch.
#[derive(Debug)]
pub struct Watch(PersistentWatcher);

impl Zk {
    /// Watches a path and everything below it.
    pub fn watch(&self, path: &'static str) -> impl Future<Output = Result<Watch, ReadError>> + Send + use<> {
        self.watch_path(path.to_owned())
    }

    /// As [`Zk::watch`], for a computed path.
    pub fn watch_path(&self, path: String) -> impl Future<Output = Result<Watch, ReadError>> + Send + use<> {
        self.read(1, |client| async move {
            client.watch(&path, AddWatchMode::PersistentRecursive).await.map(Watch)
        })
    }
}

impl Watch {
    /// Returns all changes since the last call, in order, and waits for the first one. `None` when the connection
    /// was lost, which ends the watch.
    pub async fn changes(&mut self) -> Option<Vec<Change>> {
        let mut changes = Vec::new();
        let mut event = self.0.changed().await;
        loop {
            if event.event_type == EventType::Session {
                return None;
            }
            changes.extend(change(&event));
            if changes.len() >= MAX_CHANGES {
                return Some(changes);
            }
            match self.0.changed().now_or_never() {
                Some(next) => event = next,
                None if changes.is_empty() => event = self.0.changed().await,
                None => return Some(changes),
            }
        }
    }
}

fn change(event: &WatchedEvent) -> Option<Change> {
    let kind = match event.event_type {
        EventType::NodeCreated => ChangeKind::Created,
        EventType::NodeDeleted => ChangeKind::Deleted,
        EventType::NodeDataChanged => ChangeKind::DataChanged,
        // Recursive watches report the child itself.
        EventType::NodeChildrenChanged | EventType::Session => return None,
    };
    Some(Change { place: path::parse(&event.path), kind })
}

/// A watch for one change.
#[derive(Debug)]
pub struct Glance(OneshotWatcher);

impl Glance {
    pub(crate) fn new(watcher: OneshotWatcher) -> Self {
        Self(watcher)
    }

    /// Waits for the change, or for the end of the session; read again in either case.
    pub async fn changed(self) {
        self.0.changed().await;
    }
}

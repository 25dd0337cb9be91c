//! Which workers live.
//!
//! A worker is known by its ephemeral. Lists and watches only say where to look: a worker is declared dead when
//! a watch reported its ephemeral's deletion, or when a read found it absent after its id had been seen, in the
//! list of workers or as an inbox. Both are final, because inbox and ephemeral are created in one multi and an
//! id is never used twice. A list that merely lacks a worker proves nothing: it may have been made before the
//! worker registered. A read that was overtaken by the deletion is dropped.

use std::collections::{BTreeMap, BTreeSet};

use crate::machine::worker_registry::recovery::Stored;
use crate::name::WorkerId;
use crate::worker::WorkerInfo;

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// A list, or a watch that reported a creation or a change, showed this id.
    Seen(WorkerId),
    /// Everything was listed: these ids have an ephemeral or an inbox.
    Listed(BTreeSet<WorkerId>),
    /// A watch reported that the ephemeral is gone.
    Deleted(WorkerId),
    /// The ephemeral was read.
    Read(WorkerId, Stored<WorkerInfo>),
}

/// What follows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Read these ephemerals.
    Read(Vec<WorkerId>),
    /// It lives, registered so, at this version.
    Lives(WorkerId, WorkerInfo, i32),
    /// It is dead: assign nothing to it, recover its inbox.
    Dead(WorkerId),
    /// Its registration cannot be read: it gets nothing.
    Unreadable(WorkerId, String),
}

/// The machine of one term.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Membership {
    live: BTreeMap<WorkerId, i32>,
    dead: BTreeSet<WorkerId>,
}

impl Membership {
    /// Handles one event.
    pub fn handle(&mut self, event: Event, out: &mut Vec<Effect>) {
        match event {
            Event::Seen(worker) => {
                if !self.dead.contains(&worker) {
                    out.push(Effect::Read(vec![worker]));
                }
            }
            Event::Listed(mut listed) => {
                listed.extend(self.live.keys());
                let doubtful = listed.difference(&self.dead).copied().collect::<Vec<_>>();
                if !doubtful.is_empty() {
                    out.push(Effect::Read(doubtful));
                }
            }
            Event::Deleted(worker) | Event::Read(worker, Stored::Absent) => {
                self.live.remove(&worker);
                if self.dead.insert(worker) {
                    out.push(Effect::Dead(worker));
                }
            }
            Event::Read(worker, Stored::Unreadable(why)) => {
                if !self.dead.contains(&worker) {
                    out.push(Effect::Unreadable(worker, why));
                }
            }
            Event::Read(worker, Stored::Value(info, version)) => {
                // Reads of one session come back in order, but a watch's report may overtake one.
                let newer = self.live.get(&worker).is_none_or(|known| *known <= version);
                if newer && !self.dead.contains(&worker) {
                    self.live.insert(worker, version);
                    out.push(Effect::Lives(worker, info, version));
                }
            }
        }
    }

    /// How many live.
    #[must_use]
    pub fn live(&self) -> usize {
        self.live.len()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::name::NodeId;
    use crate::time::WallMillis;

    fn worker(n: u128) -> WorkerId {
        WorkerId::new(Uuid::from_u128(n))
    }

    fn info() -> WorkerInfo {
        WorkerInfo {
            node: NodeId::new("n").unwrap(),
            host: "h".into(),
            kinds: vec![],
            leases: BTreeMap::new(),
            slots: 1,
            tags: vec![],
            codec: 1,
            started_at: WallMillis(0),
            draining: false,
        }
    }

    fn run(events: impl IntoIterator<Item = Event>) -> Vec<Effect> {
        let (mut machine, mut out) = (Membership::default(), Vec::new());
        for event in events {
            machine.handle(event, &mut out);
        }
        out
    }

    #[test]
    fn a_worker_lives_once_its_ephemeral_was_read() {
        let out = run([Event::Seen(worker(1)), Event::Read(worker(1), Stored::Value(info(), 0))]);
        assert_eq!(out, [Effect::Read(vec![worker(1)]), Effect::Lives(worker(1), info(), 0)]);
    }

    #[test]
    fn an_inbox_without_an_ephemeral_is_a_dead_worker() {
        let out = run([Event::Listed([worker(1)].into()), Event::Read(worker(1), Stored::Absent)]);
        assert_eq!(out, [Effect::Read(vec![worker(1)]), Effect::Dead(worker(1))]);
    }

    #[test]
    fn a_list_that_lacks_a_live_worker_only_asks() {
        let out = run([Event::Read(worker(1), Stored::Value(info(), 0)), Event::Listed([].into())]);
        assert_eq!(out.last(), Some(&Effect::Read(vec![worker(1)])));
    }

    #[test]
    fn a_dead_worker_does_not_come_back_with_a_read_that_was_overtaken() {
        let out = run([Event::Deleted(worker(1)), Event::Read(worker(1), Stored::Value(info(), 0))]);
        assert_eq!(out, [Effect::Dead(worker(1))]);
    }

    #[test]
    fn a_death_is_told_once() {
        let out =
            run([Event::Deleted(worker(1)), Event::Read(worker(1), Stored::Absent), Event::Seen(worker(1))]);
        assert_eq!(out, [Effect::Dead(worker(1))]);
    }

    #[test]
    fn an_older_registration_does_not_replace_a_newer_one() {
        let draining = WorkerInfo { draining: true, ..info() };
        let out = run([
            Event::Read(worker(1), Stored::Value(draining.clone(), 1)),
            Event::Read(worker(1), Stored::Value(info(), 0)),
        ]);
        assert_eq!(out, [Effect::Lives(worker(1), draining, 1)]);
    }
}

//! Membership: tracks which workers are alive.
//!
//! A worker is known by its ephemeral. Lists and watches only say which ephemerals to read. A worker is declared dead
//! when a watch reported the deletion of its ephemeral, or when a read found it absent after its id had been seen in
//! the list of workers or as an inbox. Both are final, because inbox and ephemeral are created in one multi and an id
//! is never used twice. A list that lacks a worker proves nothing, because it may have been made before the worker
//! registered. A read that was overtaken by the deletion is dropped.

use std::collections::{BTreeMap, BTreeSet};

use crate::machine::worker_registry::recovery::Stored;
use crate::name::WorkerId;
use crate::worker::WorkerInfo;

/// Input of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(clippy::large_enum_variant, reason = "a registration is read once per change of a worker")]
pub enum Event {
    /// A list, or a watch that reported a creation or a change, contained this id.
    Seen(WorkerId),
    /// A complete list: these ids have an ephemeral or an inbox.
    Listed(BTreeSet<WorkerId>),
    /// A watch reported that the ephemeral was deleted.
    Deleted(WorkerId),
    /// The ephemeral was read.
    Read(WorkerId, Stored<WorkerInfo>),
}

/// Output of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Read these ephemerals.
    Read(Vec<WorkerId>),
    /// The worker is alive, with this registration at this version.
    Lives(WorkerId, Box<WorkerInfo>, i32),
    /// The worker is dead: assign nothing to it, and recover its inbox.
    Dead(WorkerId),
    /// The worker's registration cannot be decoded: assign nothing to it.
    Unreadable(WorkerId, String),
}

/// State machine of one term.
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
                // Reads of one session return in order, but a watch event may overtake one.
                let newer = self.live.get(&worker).is_none_or(|known| *known <= version);
                if newer && !self.dead.contains(&worker) {
                    self.live.insert(worker, version);
                    out.push(Effect::Lives(worker, Box::new(info), version));
                }
            }
        }
    }

    /// Returns the number of live workers.
    #[must_use]
    pub fn live(&self) -> usize {
        self.live.len()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::change::Noted;
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
            former: vec![],
            owner: None,
            draining: false,
            settings: Noted::default(),
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
    fn a_worker_is_alive_after_its_ephemeral_was_read() {
        let out = run([Event::Seen(worker(1)), Event::Read(worker(1), Stored::Value(info(), 0))]);
        assert_eq!(out, [Effect::Read(vec![worker(1)]), Effect::Lives(worker(1), Box::new(info()), 0)]);
    }

    #[test]
    fn an_inbox_without_an_ephemeral_is_a_dead_worker() {
        let out = run([Event::Listed([worker(1)].into()), Event::Read(worker(1), Stored::Absent)]);
        assert_eq!(out, [Effect::Read(vec![worker(1)]), Effect::Dead(worker(1))]);
    }

    #[test]
    fn a_list_that_lacks_a_live_worker_only_causes_a_read() {
        let out = run([Event::Read(worker(1), Stored::Value(info(), 0)), Event::Listed([].into())]);
        assert_eq!(out.last(), Some(&Effect::Read(vec![worker(1)])));
    }

    #[test]
    fn a_dead_worker_does_not_return_with_an_overtaken_read() {
        let out = run([Event::Deleted(worker(1)), Event::Read(worker(1), Stored::Value(info(), 0))]);
        assert_eq!(out, [Effect::Dead(worker(1))]);
    }

    #[test]
    fn a_death_is_reported_once() {
        let out =
            run([Event::Deleted(worker(1)), Event::Read(worker(1), Stored::Absent), Event::Seen(worker(1))]);
        assert_eq!(out, [Effect::Dead(worker(1))]);
    }

    #[test]
    fn an_unreadable_registration_is_reported_unless_its_worker_is_dead() {
        let unreadable = || Event::Read(worker(1), Stored::Unreadable("newer".to_owned()));
        assert_eq!(run([unreadable()]), [Effect::Unreadable(worker(1), "newer".to_owned())]);
        assert_eq!(run([Event::Deleted(worker(1)), unreadable()]), [Effect::Dead(worker(1))]);
    }

    #[test]
    fn an_older_registration_does_not_replace_a_newer_one() {
        let draining = WorkerInfo { draining: true, ..info() };
        let out = run([
            Event::Read(worker(1), Stored::Value(draining.clone(), 1)),
            Event::Read(worker(1), Stored::Value(info(), 0)),
        ]);
        assert_eq!(out, [Effect::Lives(worker(1), Box::new(draining), 1)]);
    }

    #[test]
    fn live_workers_are_counted() {
        let (mut machine, mut out) = (Membership::default(), Vec::new());
        for n in [1, 2] {
            machine.handle(Event::Read(worker(n), Stored::Value(info(), 0)), &mut out);
        }
        assert_eq!(machine.live(), 2);
        machine.handle(Event::Deleted(worker(1)), &mut out);
        assert_eq!(machine.live(), 1);
    }

    #[test]
    fn a_seen_worker_is_read_unless_it_is_dead() {
        let (mut machine, mut out) = (Membership::default(), Vec::new());
        machine.handle(Event::Deleted(worker(1)), &mut out);
        out.clear();
        machine.handle(Event::Seen(worker(1)), &mut out);
        assert_eq!(out, []);
        machine.handle(Event::Seen(worker(2)), &mut out);
        assert_eq!(out, [Effect::Read(vec![worker(2)])]);
    }
}

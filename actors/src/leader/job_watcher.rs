//! The job watcher: reports the most urgent jobs under `/ready` to the assigner.

use bellwether_core::chain::chain;
use bellwether_core::job::QueueEntry;
use bellwether_core::machine::assigner;
use bellwether_core::machine::job_watcher::{self, Effect, Event, Listed, Parent};
use bellwether_core::machine::worker::Lookup;
use bellwether_core::path::{self, Place};
use bellwether_core::port::{Change, ChangeKind, Node, ReadResult};
use bellwether_core::ready::{ClassName, ReadyEntry, RecordEntry, Slot};
use bellwether_core::segment::jobs_under;

use super::SWEEP;
use crate::unreadable::Unreadable;
use crate::{Concern, Context, Feed};

/// The watch and the timer of the job watcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// The watch on the entries.
    Ready,
    /// The periodic listing.
    Sweep,
}

/// Reports the waiting jobs to the assigner, in one term.
pub struct JobWatcher {
    machine: job_watcher::JobWatcher,
    unreadable: Unreadable,
}

/// Messages to the job watcher.
pub enum JobWatcherMsg {
    /// The term is active again.
    Resume,
    /// The periodic listing is due.
    Sweep,
    /// From the watch on the entries.
    Feed(Feed),
    /// What the list with this ticket found.
    Listed(u64, ReadResult<Vec<Listed>>),
    /// The entries that the read with this ticket found, or those whose read was not answered.
    Read(u64, Result<Vec<(ReadyEntry, Lookup<QueueEntry>)>, Vec<ReadyEntry>>),
    /// The number of entries of slots.
    Sized(ReadResult<Vec<(ClassName, Slot, usize)>>),
}

kinds!(JobWatcherMsg { Resume, Sweep, Feed => Feed, Listed, Read, Sized });

/// Messages of the job watcher to its neighbours.
pub enum Tell {
    /// To the assigner.
    Assigner(assigner::Event),
}

impl Concern for JobWatcher {
    const NAME: &'static str = "job_watcher";
    type Msg = JobWatcherMsg;
    type Args = ();
    type Key = Key;
    type Tell = Tell;

    fn start(cx: &mut Context<'_, Self>, (): ()) -> Self {
        watch(cx);
        cx.sweep(Key::Sweep, SWEEP, JobWatcherMsg::Sweep);
        Self { machine: job_watcher::JobWatcher::default(), unreadable: Unreadable::default() }
    }

    fn handle(&mut self, cx: &mut Context<'_, Self>, msg: JobWatcherMsg) {
        let mut effects = Vec::new();
        let mut feed = |event| self.machine.handle(event, &mut effects);
        match msg {
            JobWatcherMsg::Resume => return watch(cx),
            JobWatcherMsg::Sweep => {
                feed(Event::Sweep);
                cx.sweep(Key::Sweep, SWEEP, JobWatcherMsg::Sweep);
            }
            JobWatcherMsg::Feed(Feed::Watching) => feed(Event::Watched),
            JobWatcherMsg::Feed(Feed::Changes(changes)) => {
                changes.into_iter().filter_map(event).for_each(feed);
            }
            JobWatcherMsg::Listed(ticket, lists) => {
                if let Err(error) = &lists {
                    // The next reconnect or sweep lists again.
                    tracing::debug!(error = %chain(error), "the leader cannot list the waiting jobs");
                }
                feed(Event::Listed { ticket, lists: lists.ok() });
            }
            JobWatcherMsg::Read(ticket, Ok(looks)) => {
                let unreadable = &mut self.unreadable;
                let entry = |(at, look)| (unreadable.readable(|| path::ready_entry(&at), look), at);
                let entries = looks.into_iter().map(entry).map(|(entry, at)| (at, entry)).collect();
                feed(Event::Read { ticket, entries });
            }
            JobWatcherMsg::Read(ticket, Err(entries)) => feed(Event::ReadFailed { ticket, entries }),
            JobWatcherMsg::Sized(sizes) => feed(Event::Sized(sizes.ok())),
        }
        self.machine.flush(&mut effects);
        effects.into_iter().for_each(|effect| carry_out(cx, effect));
    }
}

fn watch(cx: &mut Context<'_, JobWatcher>) {
    cx.watch(Key::Ready, path::READY.into(), JobWatcherMsg::Feed);
}

fn carry_out(cx: &mut Context<'_, JobWatcher>, effect: Effect) {
    match effect {
        Effect::List { ticket, parents } => {
            cx.children_many(parents.iter().map(path_of).collect(), move |lists| {
                let lists = lists.map(|lists| parents.into_iter().zip(lists).map(listed).collect());
                JobWatcherMsg::Listed(ticket, lists)
            });
        }
        Effect::Read { ticket, entries } => {
            cx.get_many(entries.iter().map(path::ready_entry).collect(), move |nodes| {
                JobWatcherMsg::Read(
                    ticket,
                    match nodes {
                        Ok(nodes) => Ok(entries.into_iter().zip(nodes.iter().map(Node::look)).collect()),
                        Err(_) => Err(entries),
                    },
                )
            });
        }
        Effect::Count(class, slot) => cx.children(path::ready_slot(&class, slot), move |names| {
            let entry = |name: &String| name.parse::<RecordEntry>().ok();
            let jobs = |names: Option<Vec<String>>| {
                names.iter().flatten().filter_map(entry).map(|entry| jobs_under(&entry.job)).sum()
            };
            JobWatcherMsg::Sized(names.map(|names| vec![(class, slot, jobs(names))]))
        }),
        Effect::Size(slots) => {
            let paths = slots.iter().map(|(class, slot)| path::ready_slot(class, *slot));
            cx.get_many(paths.collect(), move |nodes| {
                let size = |node: Option<Node>| node.map_or(0, |node| node.children);
                let sizes = |nodes: Vec<_>| slots.into_iter().zip(nodes);
                JobWatcherMsg::Sized(nodes.map(|nodes| {
                    sizes(nodes).map(|((class, slot), node)| (class, slot, size(node))).collect()
                }))
            });
        }
        Effect::Queued(jobs) => cx.tell(Tell::Assigner(assigner::Event::Queued(jobs))),
        Effect::Unqueued(entry) => cx.tell(Tell::Assigner(assigner::Event::Unqueued(entry))),
        Effect::Beyond(numbers) => cx.tell(Tell::Assigner(assigner::Event::Beyond(numbers))),
    }
}

fn event(change: Change) -> Option<Event> {
    Some(match (change.place, change.kind) {
        // An operator may have repaired an entry in place.
        (Place::Ready(at), ChangeKind::Created | ChangeKind::DataChanged) => Event::Created(at),
        (Place::Ready(at), ChangeKind::Deleted) => Event::Deleted(at),
        (Place::ReadyClass(class), ChangeKind::Created) => Event::ClassCreated(class),
        (Place::ReadyClass(class), ChangeKind::Deleted) => Event::ClassDeleted(class),
        (Place::ReadySlot(class, slot), ChangeKind::Created) => Event::SlotCreated(class, slot),
        (Place::ReadySlot(class, slot), ChangeKind::Deleted) => Event::SlotDeleted(class, slot),
        // Data of containers means nothing, and other znodes are foreign.
        (_, ChangeKind::Created | ChangeKind::Deleted | ChangeKind::DataChanged) => return None,
    })
}

fn path_of(parent: &Parent) -> String {
    match parent {
        Parent::Shard(shard) => path::ready_shard(*shard),
        Parent::Class(class) => path::ready_class(class),
        Parent::Slot(class, slot) => path::ready_slot(class, *slot),
    }
}

/// The children of a znode. Foreign names are ignored.
fn listed((parent, names): (Parent, Option<Vec<String>>)) -> Listed {
    fn parsed<T: std::str::FromStr>(names: Vec<String>) -> Vec<T> {
        names.iter().filter_map(|name| name.parse().ok()).collect()
    }
    match parent {
        Parent::Shard(shard) => {
            let mut classes = parsed::<ClassName>(names.unwrap_or_default());
            classes.retain(|class| class.shard() == shard);
            Listed::Classes(classes)
        }
        Parent::Class(class) => Listed::Slots(class, names.map(parsed)),
        Parent::Slot(class, slot) => Listed::Entries(class, slot, names.map(parsed)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::{Stage, watched};

    #[test]
    fn the_entries_are_watched_again_after_a_reconnect() {
        let (mut stage, started) = Stage::<JobWatcher>::start(());
        assert_eq!(watched(&started), [path::READY]);
        assert_eq!(watched(&stage.handle(JobWatcherMsg::Resume)), [path::READY]);
    }
}

//! The assigner: carries out what [`bellwether_core::machine::assigner`] decides.
//!
//! One recursive watch on the parent of all inboxes reports which inboxes changed. A one-shot watch on each inbox would
//! cause fewer events. But a node that is also a worker watches its own inbox recursively in the same session, and the
//! server keeps one mode per path, so the one-shot watch would be lost (ZOOKEEPER-4466). A second recursive watch, on
//! the lanes, reports deleted turns; a job without a lane causes no event there. An event of the watches on the
//! pauses and on the placement setting triggers a read of both, because they are few.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::budget::{MAX_INBOX, MAX_READ_BATCH};
use bellwether_core::change::Noted;
use bellwether_core::job::{Assignment, Isolation, Turn, TurnIndex};
use bellwether_core::machine::assigner::{
    self, Effect, Event, InboxContents, Job, Order, RELIST_AFTER, Settings, Spot, StrategySetting,
};
use bellwether_core::metric;
use bellwether_core::name::{JobId, Kind, Lane, WorkerId};
use bellwether_core::outcome::{Outcome, Reason};
use bellwether_core::path::{self, Place};
use bellwether_core::placement::{BuiltInStrategy, OwnStrategies, PlacementSetting};
use bellwether_core::port::{Change, ChangeKind, Node, ReadError, ReadResult, Requests};
use bellwether_core::ready::ReadyEntry;
use bellwether_core::time::WallMillis;
use bellwether_core::txn::Batch;
use bellwether_core::wire;
use metrics::{counter, gauge, histogram};

use super::SWEEP;
use super::queue_depth::{self, QueueDepth};
use crate::kind_label;
use crate::trace::Assigning;
use crate::unreadable::Unreadable;
use crate::{Concern, Context, Feed};

/// The longest wait until a job expires. A changed wall clock is noticed within this time.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The watches and the timers of the assigner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// The watch on the inboxes.
    Inboxes,
    /// The watch on the lanes.
    Lanes,
    /// The watch on the pauses.
    Pauses,
    /// The watch on the placement setting.
    Placement,
    /// The periodic listing.
    Sweep,
    /// The time at which the next job expires.
    Expiry,
    /// The time at which inboxes with changes are listed.
    Relist,
}

/// Assigns jobs to workers, in one term.
pub struct Assigner {
    machine: assigner::Assigner,
    epoch: i32,
    unreadable: Unreadable,
    depth: QueueDepth,
    /// The timer for lists is set.
    relists: bool,
}

/// Messages to the assigner.
pub enum AssignerMsg {
    /// From a neighbour: jobs that wait, and workers.
    Event(Event),
    /// The term is active again.
    Resume,
    /// The periodic listing is due.
    Sweep,
    /// The next job may have expired.
    Tick,
    /// Inboxes with changes are to be listed.
    Relist,
    /// The outcome of a batch.
    Committed(Batch<Job>, Outcome<()>),
    /// An inbox with its assignments; `None` when there is no inbox.
    InboxRead(WorkerId, ReadResult<Option<InboxContents>>),
    /// The names in an inbox; `None` when there is no inbox.
    Inbox(WorkerId, ReadResult<Option<Vec<String>>>),
    /// From the watch on the inboxes.
    Feed(Feed),
    /// From the watch on the lanes.
    Lanes(Feed),
    /// The turns of these lanes, or `None` when they were not listed; the number is the ticket of the listing.
    LanesListed(u64, Vec<Lane>, Option<Vec<Vec<Spot>>>),
    /// The znodes of these turns; the number is the ticket of the read.
    TurnsRead(u64, Vec<(Lane, Spot)>, ReadResult<Vec<Option<Node>>>),
    /// Whether entries of jobs whose assignment has an unknown outcome exist.
    Resolved(ReadResult<Vec<(ReadyEntry, bool)>>),
    /// From the watches on the pauses and on the placement setting.
    Settings(Feed),
    /// The settings, or `None` when they were not read.
    SettingsRead(Option<Settings>),
}

kinds!(AssignerMsg {
    Event => Event,
    Resume,
    Sweep,
    Tick,
    Relist,
    Committed,
    InboxRead,
    Inbox,
    Feed => Feed,
    Lanes => Feed,
    LanesListed,
    TurnsRead,
    Resolved,
    Settings => Feed,
    SettingsRead,
});

/// Messages of the assigner to its neighbours.
pub enum Tell {
    /// To the expirer: these jobs expired while they waited. The assigner no longer tracks them.
    Overdue(Vec<(JobId, WallMillis)>),
    /// To the leader wing: another leader has claimed.
    FencedOut,
}

impl Concern for Assigner {
    const NAME: &'static str = "assigner";
    type Msg = AssignerMsg;
    /// The epoch of the term, and this process's own placement strategies.
    type Args = (i32, OwnStrategies);
    type Key = Key;
    type Tell = Tell;

    fn start(cx: &mut Context<'_, Self>, (epoch, own): (i32, OwnStrategies)) -> Self {
        let machine = assigner::Assigner::new(epoch, own, cx.rng.u64(..));
        cx.sweep(Key::Sweep, SWEEP, AssignerMsg::Sweep);
        watch(cx);
        Self {
            machine,
            epoch,
            unreadable: Unreadable::default(),
            depth: QueueDepth::default(),
            relists: false,
        }
    }

    fn handle(&mut self, cx: &mut Context<'_, Self>, msg: AssignerMsg) {
        let event = match msg {
            AssignerMsg::Event(event) => {
                if let Event::Worker(_, info, _) = &event {
                    kind_label::serve(&info.kinds);
                }
                event
            }
            // The state may have changed between the last listing and the watch.
            AssignerMsg::Feed(Feed::Watching) => Event::Resume,
            AssignerMsg::Feed(Feed::Changes(changes)) => {
                return emptied(changes)
                    .into_iter()
                    .for_each(|worker| self.feed(cx, Event::InboxChanged(worker)));
            }
            AssignerMsg::Lanes(Feed::Watching) => Event::LanesWatched,
            AssignerMsg::Lanes(Feed::Changes(changes)) => {
                return ended(changes).for_each(|(Turn { lane, generation }, job)| {
                    self.feed(cx, Event::TurnGone(lane, (generation, job)));
                });
            }
            AssignerMsg::LanesListed(ticket, lanes, lists) => Event::LanesListed { ticket, lanes, lists },
            AssignerMsg::TurnsRead(ticket, turns, nodes) => {
                let found = nodes.ok().map(|nodes| {
                    let nodes = turns.iter().zip(nodes);
                    nodes.map(|(turn, node)| Some(order(turn, &node?, &mut self.unreadable))).collect()
                });
                Event::TurnsRead { ticket, turns, found }
            }
            AssignerMsg::Resume => {
                watch(cx);
                Event::Resume
            }
            AssignerMsg::Sweep => {
                cx.sweep(Key::Sweep, SWEEP, AssignerMsg::Sweep);
                self.depth.forget();
                self.feed(cx, Event::SettingsChanged);
                Event::Resume
            }
            AssignerMsg::Settings(Feed::Watching | Feed::Changes(_)) => Event::SettingsChanged,
            AssignerMsg::SettingsRead(settings) => Event::Settings(settings),
            AssignerMsg::Tick => Event::Tick,
            AssignerMsg::Relist => {
                self.relists = false;
                Event::Relist
            }
            AssignerMsg::Committed(batch, outcome) => Event::Committed(batch, outcome),
            AssignerMsg::InboxRead(worker, Ok(Some(contents))) => Event::InboxRead(worker, Some(contents)),
            AssignerMsg::InboxRead(worker, Err(ReadError::Disconnected)) => Event::InboxRead(worker, None),
            AssignerMsg::Inbox(worker, Ok(Some(names))) => Event::Inbox(worker, Some(names)),
            // A worker without an inbox takes no jobs. The worker registry detects its end with its own watch.
            AssignerMsg::InboxRead(worker, Ok(None)) | AssignerMsg::Inbox(worker, Ok(None)) => {
                Event::WorkerGone(worker)
            }
            AssignerMsg::Inbox(worker, Err(ReadError::Disconnected)) => Event::Inbox(worker, None),
            AssignerMsg::InboxRead(worker, Err(ReadError::Refused(reason)))
            | AssignerMsg::Inbox(worker, Err(ReadError::Refused(reason))) => {
                tracing::error!(%worker, %reason, "the leader cannot list the inbox of a worker: the worker gets no jobs");
                Event::InboxRefused(worker)
            }
            AssignerMsg::Resolved(entries) => {
                let entries = entries.ok();
                for (_, exists) in entries.iter().flatten() {
                    let outcome = if *exists { "not_applied" } else { "applied" };
                    counter!(metric::UNKNOWN_OUTCOMES_RESOLVED, "outcome" => outcome).increment(1);
                }
                Event::Resolved(entries)
            }
        };
        self.feed(cx, event);
    }
}

fn watch(cx: &mut Context<'_, Assigner>) {
    cx.watch(Key::Inboxes, path::ASSIGNMENTS.into(), AssignerMsg::Feed);
    cx.watch(Key::Lanes, path::LANES.into(), AssignerMsg::Lanes);
    cx.watch(Key::Pauses, path::PAUSES.into(), AssignerMsg::Settings);
    cx.watch(Key::Placement, path::PLACEMENT.into(), AssignerMsg::Settings);
}

impl Assigner {
    fn feed(&mut self, cx: &mut Context<'_, Self>, event: Event) {
        let due_before = self.machine.next_overdue();
        let ticked = event == Event::Tick;
        let mut effects = Vec::new();
        self.machine.handle(cx.now, cx.wall, event, &mut effects);
        for effect in effects {
            match effect {
                Effect::Commit(batch) => {
                    let assigning = Assigning::begin(&batch, self.epoch);
                    cx.commit_batch(batch, |batch, outcome| {
                        assigning.end(&outcome);
                        AssignerMsg::Committed(batch, outcome)
                    });
                }
                Effect::ReadInbox(worker) => {
                    cx.task(
                        move |zk| async move { AssignerMsg::InboxRead(worker, read_inbox(zk, worker).await) },
                    );
                }
                Effect::ListInbox(worker) => {
                    cx.children(path::inbox(worker), move |names| AssignerMsg::Inbox(worker, names));
                }
                Effect::Resolve(entries) => {
                    cx.task(|zk| async move { AssignerMsg::Resolved(resolve(zk, entries).await) });
                }
                Effect::ListLanes { ticket, lanes } => {
                    cx.children_many(lanes.iter().map(path::lane).collect(), move |lists| {
                        let lists = lists.ok().map(|lists| lists.into_iter().map(turns).collect());
                        AssignerMsg::LanesListed(ticket, lanes, lists)
                    });
                }
                Effect::ReadTurns { ticket, turns } => {
                    let paths = turns.iter().map(|(lane, (generation, job))| {
                        path::turn(&Turn { lane: lane.clone(), generation: *generation }, job)
                    });
                    cx.get_many(paths.collect(), move |nodes| AssignerMsg::TurnsRead(ticket, turns, nodes));
                }
                Effect::ReadSettings => {
                    cx.task(|zk| async move { AssignerMsg::SettingsRead(read_settings(zk).await.ok()) });
                }
                Effect::Fallback(why) => {
                    let used = BuiltInStrategy::default().as_str();
                    tracing::warn!(reason = %why, used, "the leader cannot use the placement strategy that is set: it uses the default");
                }
                Effect::Overdue(jobs) => cx.tell(Tell::Overdue(jobs)),
                Effect::FencedOut => cx.tell(Tell::FencedOut),
                Effect::Assigned { kind, jobs, since } => {
                    counter!(metric::JOB_ATTEMPTS_ASSIGNED, "kind" => kind_label::of_served(&kind))
                        .increment(jobs as u64);
                    histogram!(metric::ASSIGNMENT_DURATION_SECONDS).record(cx.now.since(since));
                }
            }
        }
        let due = self.machine.next_overdue();
        if ticked || due != due_before {
            match due {
                Some(due) => {
                    // One more millisecond, because a job may start in its last millisecond.
                    let wait = due.since(cx.wall) + Duration::from_millis(1);
                    cx.after(Key::Expiry, wait.min(LONGEST_WAIT), AssignerMsg::Tick);
                }
                None => cx.disarm(Key::Expiry),
            }
        }
        if self.machine.awaits_relist() && !self.relists {
            self.relists = true;
            cx.after(Key::Relist, RELIST_AFTER, AssignerMsg::Relist);
        }
        self.depth.record(&self.machine);
        set_gauges(Gauges {
            isolated: self.machine.isolated(),
            workers: self.machine.workers(),
            unlisted: self.machine.unlisted(),
            fallback: self.machine.uses_fallback(),
            slots: self.machine.slots(),
        });
    }
}

/// The workers with a deleted assignment. New assignments are ignored: this leader created and counted them itself.
fn emptied(changes: Vec<Change>) -> BTreeSet<WorkerId> {
    let deleted = changes.into_iter().filter(|change| change.kind == ChangeKind::Deleted);
    let worker = |change: Change| {
        let Place::Assignment(worker, _) = change.place else { return None };
        Some(worker)
    };
    deleted.filter_map(worker).collect()
}

/// The deleted turns. A new turn is ignored, because it comes after all known turns.
fn ended(changes: Vec<Change>) -> impl Iterator<Item = (Turn, JobId)> {
    let deleted = changes.into_iter().filter(|change| change.kind == ChangeKind::Deleted);
    deleted.filter_map(|change| {
        let Place::Turn(turn, job) = change.place else { return None };
        Some((turn, job))
    })
}

/// Reads the paused kinds and the placement strategy. If the placement setting cannot be read although the session is not
/// disturbed, the default strategy is used.
async fn read_settings(zk: Arc<dyn Requests>) -> ReadResult<Settings> {
    let paused = paused(zk.children(path::PAUSES.into()).await?);
    let strategy = match zk.get(path::PLACEMENT.into()).await {
        Ok(None) => StrategySetting::Absent,
        Ok(Some(node)) => match wire::decode::<Noted<PlacementSetting>>(&node.data) {
            Ok(setting) => StrategySetting::Named(setting.value.strategy),
            Err(error) => StrategySetting::Unreadable(error.to_string()),
        },
        Err(ReadError::Refused(reason)) => StrategySetting::Unreadable(reason.to_string()),
        Err(error @ ReadError::Disconnected) => return Err(error),
    };
    Ok(Settings { paused, strategy })
}

/// The paused kinds. Invalid names are ignored. If an operator has deleted the parent, no kind is paused.
fn paused(names: Option<Vec<String>>) -> BTreeSet<Kind> {
    names.iter().flatten().filter_map(|name| Kind::new(name).ok()).collect()
}

/// The turns of a lane; an absent lane has none. Foreign names are ignored.
fn turns(names: Option<Vec<String>>) -> Vec<Spot> {
    names.iter().flatten().filter_map(|name| path::parse_turn(name)).collect()
}

/// The order of a turn. A turn whose data cannot be read comes last among the turns of its transaction.
fn order((lane, (generation, job)): &(Lane, Spot), node: &Node, unreadable: &mut Unreadable) -> Order {
    let TurnIndex(index) = wire::decode(&node.data).unwrap_or_else(|error| {
        let turn = Turn { lane: lane.clone(), generation: *generation };
        unreadable.tell(path::turn(&turn, job), node.version, error);
        TurnIndex(u32::MAX)
    });
    (node.created, index)
}

/// Lists an inbox and reads its assignments. One that is deleted in between is not isolated, and neither is one that
/// cannot be read: its worker does not run it.
async fn read_inbox(zk: Arc<dyn Requests>, worker: WorkerId) -> ReadResult<Option<InboxContents>> {
    let Some(names) = zk.children(path::inbox(worker)).await? else { return Ok(None) };
    if names.len() > MAX_INBOX {
        let reason = format!("{} znodes are more than {MAX_INBOX}", names.len());
        return Err(ReadError::Refused(Reason::Other(reason)));
    }
    let jobs = names.iter().filter_map(|name| JobId::new(name).ok()).collect::<Vec<_>>();
    let mut contents = InboxContents { names, ..InboxContents::default() };
    for jobs in jobs.chunks(MAX_READ_BATCH) {
        let nodes = zk.get_many(jobs.iter().map(|job| path::assignment(worker, job)).collect()).await?;
        for (job, node) in jobs.iter().zip(nodes) {
            let assignment = node.and_then(|node| wire::decode::<Assignment>(&node.data).ok());
            let isolation = assignment.map_or(Isolation::Shared, |assignment| assignment.isolation);
            if isolation != Isolation::Shared {
                contents.isolated.insert(job.clone(), isolation);
            }
        }
    }
    Ok(Some(contents))
}

/// Reads whether entries exist.
async fn resolve(zk: Arc<dyn Requests>, entries: Vec<ReadyEntry>) -> ReadResult<Vec<(ReadyEntry, bool)>> {
    let mut resolved = Vec::with_capacity(entries.len());
    for entries in entries.chunks(MAX_READ_BATCH) {
        let nodes = zk.get_many(entries.iter().map(path::ready_entry).collect()).await?;
        resolved.extend(entries.iter().cloned().zip(nodes.iter().map(Option::is_some)));
    }
    Ok(resolved)
}

#[derive(Default)]
struct Gauges {
    isolated: usize,
    workers: usize,
    unlisted: usize,
    /// Whether the default placement strategy replaces the one that is set.
    fallback: bool,
    /// All slots, and those in use.
    slots: (usize, usize),
}

#[expect(clippy::cast_precision_loss, reason = "gauges are floats, and no count comes near 2^53")]
fn set_gauges(gauges: Gauges) {
    let Gauges { isolated, workers, unlisted, fallback, slots: (slots, used) } = gauges;
    gauge!(metric::ISOLATED_JOBS).set(isolated as f64);
    gauge!(metric::WORKERS).set(workers as f64);
    gauge!(metric::WORKERS_UNLISTED).set(unlisted as f64);
    gauge!(metric::PLACEMENT_FALLBACK).set(f64::from(u8::from(fallback)));
    gauge!(metric::SLOTS).set(slots as f64);
    gauge!(metric::SLOTS_USED).set(used as f64);
}

/// Sets the gauges that only a leader reports to zero, for a node that is no longer the leader.
pub fn clear_gauges() {
    gauge!(metric::DELAYED_JOBS_IN_HORIZON).set(0.0);
    gauge!(metric::SCHEDULES).set(0.0);
    gauge!(metric::UNFINISHED_GROUPS).set(0.0);
    queue_depth::clear();
    set_gauges(Gauges::default());
}

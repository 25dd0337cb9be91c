//! The schedule keeper: creates the job of each tick of a schedule.

use bellwether_core::chain::chain;
use bellwether_core::group::GroupRecord;
use bellwether_core::job::JobRecord;
use bellwether_core::machine::schedule_keeper::{self, Effect, Event, Found, PriorJob, Stamp};
use bellwether_core::metric;
use bellwether_core::name::{GroupId, JobId, ScheduleId};
use bellwether_core::outcome::Outcome;
use bellwether_core::path;
use bellwether_core::port::{ChangeKind, Node, ReadResult, Requests};
use bellwether_core::schedule::{ScheduleRecord, instant};
use bellwether_core::txn::Batch;
use bellwether_core::wire::{self, WireError};
use metrics::{counter, gauge};

use super::alarm::Alarm;
use super::{FencedOut, SWEEP};
use crate::trace::Ticking;
use crate::unreadable::Unreadable;
use crate::{Concern, Context, Feed};

/// The watch and the timers of the schedule keeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// The watch on the schedules.
    Schedules,
    /// The periodic listing.
    Sweep,
    /// The time of the next tick.
    Due,
}

/// Creates the job of each tick of a schedule, in one term.
pub struct ScheduleKeeper {
    machine: schedule_keeper::ScheduleKeeper,
    unreadable: Unreadable,
    alarm: Alarm<Key>,
}

/// Messages to the schedule keeper.
pub enum ScheduleKeeperMsg {
    /// The term is active again.
    Resume,
    /// The next tick may be due.
    Tick,
    /// From the watch on the schedules.
    Feed(Feed),
    /// The version and the children of the schedules' parent; `None` when it is absent.
    Listed(ReadResult<Option<(i32, Vec<String>)>>),
    /// The schedules that were read.
    Read(Vec<ScheduleId>, ReadResult<Vec<Option<Node>>>),
    /// The jobs on which ticks depend, or the keys whose read was not answered.
    JobsRead(Result<Vec<(schedule_keeper::Key, PriorJob)>, Vec<schedule_keeper::Key>>),
    /// The outcome of a batch of ticks.
    Committed(Batch<schedule_keeper::Key>, Outcome<()>),
    /// The periodic listing is due.
    Sweep,
}

kinds!(ScheduleKeeperMsg { Resume, Tick, Feed => Feed, Listed, Read, JobsRead, Committed, Sweep });

impl Concern for ScheduleKeeper {
    const NAME: &'static str = "schedule_keeper";
    type Msg = ScheduleKeeperMsg;
    /// The epoch of the term.
    type Args = i32;
    type Key = Key;
    type Tell = FencedOut;

    fn start(cx: &mut Context<'_, Self>, epoch: i32) -> Self {
        watch(cx);
        cx.sweep(Key::Sweep, SWEEP, ScheduleKeeperMsg::Sweep);
        let alarm = Alarm::start(cx, Key::Due, ScheduleKeeperMsg::Tick);
        Self {
            machine: schedule_keeper::ScheduleKeeper::new(epoch),
            unreadable: Unreadable::default(),
            alarm,
        }
    }

    fn handle(&mut self, cx: &mut Context<'_, Self>, msg: ScheduleKeeperMsg) {
        let event = match msg {
            ScheduleKeeperMsg::Resume => return watch(cx),
            ScheduleKeeperMsg::Sweep => {
                self.feed(cx, Event::Resync);
                return cx.sweep(Key::Sweep, SWEEP, ScheduleKeeperMsg::Sweep);
            }
            ScheduleKeeperMsg::Tick => Event::Tick,
            ScheduleKeeperMsg::Feed(Feed::Watching) => Event::Resync,
            ScheduleKeeperMsg::Feed(Feed::Changes(changes)) => {
                for change in changes {
                    let path::Place::Schedule(schedule) = change.place else { continue };
                    self.feed(
                        cx,
                        match change.kind {
                            ChangeKind::Created | ChangeKind::DataChanged => Event::Changed(schedule),
                            ChangeKind::Deleted => Event::Gone(schedule),
                        },
                    );
                }
                return;
            }
            ScheduleKeeperMsg::Listed(Ok(listed)) => {
                // An operator may have deleted the parent. Nodes create it again when they connect.
                let (removals, names) = listed.unwrap_or((0, Vec::new()));
                let schedules = names.iter().filter_map(|name| ScheduleId::new(name).ok()).collect();
                Event::Listed { removals, schedules }
            }
            // The next reconnect or sweep lists again.
            ScheduleKeeperMsg::Listed(Err(error)) => {
                tracing::debug!(error = %chain(&error), "the leader cannot list the schedules");
                Event::ListFailed
            }
            ScheduleKeeperMsg::Read(schedules, Ok(nodes)) => {
                let found = |(schedule, node)| (self.found(&schedule, node), schedule);
                let found = schedules.into_iter().zip(nodes).map(found);
                Event::Read(found.map(|(found, schedule)| (schedule, found)).collect())
            }
            ScheduleKeeperMsg::Read(schedules, Err(_)) => Event::ReadFailed(schedules),
            ScheduleKeeperMsg::JobsRead(Ok(jobs)) => Event::JobsRead(jobs),
            ScheduleKeeperMsg::JobsRead(Err(keys)) => Event::JobsReadFailed(keys),
            ScheduleKeeperMsg::Committed(batch, outcome) => Event::Committed(batch, outcome),
        };
        self.feed(cx, event);
    }
}

fn watch(cx: &mut Context<'_, ScheduleKeeper>) {
    cx.watch(Key::Schedules, path::SCHEDULES.into(), ScheduleKeeperMsg::Feed);
}

fn list(cx: &mut Context<'_, ScheduleKeeper>) {
    cx.task(|zk| {
        // Requested in this order, so the list is not older than the version.
        let parent = zk.get(path::SCHEDULES.into());
        let children = zk.children(path::SCHEDULES.into());
        let listed = async move {
            let parent = parent.await?;
            let children = children.await?;
            Ok(parent.map(|parent| parent.version).zip(children))
        };
        async move { ScheduleKeeperMsg::Listed(listed.await) }
    });
}

impl ScheduleKeeper {
    fn feed(&mut self, cx: &mut Context<'_, Self>, event: Event) {
        let ticked = event == Event::Tick;
        let mut effects = Vec::new();
        self.machine.handle(cx.wall, event, &mut effects);
        for effect in effects {
            match effect {
                Effect::List => list(cx),
                Effect::Read(schedules) => {
                    let paths = schedules.iter().map(path::schedule).collect();
                    cx.get_many(paths, move |nodes| ScheduleKeeperMsg::Read(schedules, nodes));
                }
                Effect::ReadJobs(jobs) => cx.task(move |zk| async move {
                    let (keys, jobs): (Vec<_>, Vec<_>) = jobs.into_iter().unzip();
                    ScheduleKeeperMsg::JobsRead(match prior_jobs(&*zk, jobs).await {
                        Ok(found) => Ok(keys.into_iter().zip(found).collect()),
                        Err(_) => Err(keys),
                    })
                }),
                Effect::Commit(mut batch) => {
                    let ticking = Ticking::begin(&mut batch);
                    cx.commit_batch(batch, |batch, outcome| {
                        ticking.end(&outcome);
                        ScheduleKeeperMsg::Committed(batch, outcome)
                    });
                }
                Effect::Ticked(schedule, at) => {
                    tracing::debug!(%schedule, tick = instant::text(at), "the leader created the job of a tick");
                    counter!(metric::SCHEDULE_TICKS).increment(1);
                }
                Effect::Skipped(schedule, skipped) => {
                    let (reason, ticks) = (skipped.reason.as_str(), skipped.ticks);
                    let (from, through) = (instant::text(ticks.from), instant::text(ticks.through));
                    tracing::warn!(%schedule, reason, from, through, count = ticks.count, "the leader skipped ticks of the schedule");
                    counter!(metric::SCHEDULE_TICKS_SKIPPED, "reason" => reason)
                        .increment(u64::from(ticks.count));
                }
                Effect::FencedOut => cx.tell(FencedOut),
            }
        }
        self.alarm.set(cx, self.machine.next_due(), ticked, ScheduleKeeperMsg::Tick);
        #[expect(clippy::cast_precision_loss, reason = "a gauge is a float, and no count comes near 2^53")]
        gauge!(metric::SCHEDULES).set(self.machine.len() as f64);
    }

    /// Decodes a record unless it is known: a sweep reads all records, and checking a calendar is expensive.
    fn found(&mut self, schedule: &ScheduleId, node: Option<Node>) -> Found {
        let Some(node) = node else { return Found::Nothing };
        let stamp = Stamp { created: node.created, version: node.version };
        if self.machine.knows(schedule, stamp) {
            return Found::Same;
        }
        match wire::decode::<ScheduleRecord>(&node.data) {
            Ok(record) => Found::Record(stamp, Box::new(record)),
            Err(error) => {
                self.unreadable.tell(path::schedule(schedule), node.version, error);
                Found::Nothing
            }
        }
    }
}

/// Reads jobs, and then the groups of their sub-jobs.
async fn prior_jobs(zk: &dyn Requests, jobs: Vec<JobId>) -> ReadResult<Vec<PriorJob>> {
    let nodes = zk.get_many(jobs.iter().map(path::record).collect()).await?;
    let records = nodes.into_iter().map(|node| {
        let node = node?;
        Some(wire::decode::<JobRecord>(&node.data).map(|record| (record, node.version)))
    });
    let records = records.collect::<Vec<_>>();
    let parents = jobs.iter().zip(&records).filter_map(|(job, record)| match record {
        Some(Ok((record, _))) if record.spawned => Some(path::group(&GroupId::of_sub_jobs(job, record))),
        Some(Ok(_) | Err(_)) | None => None,
    });
    let parents = parents.collect::<Vec<_>>();
    let groups = if parents.is_empty() { Vec::new() } else { zk.get_many(parents).await? };
    let mut groups = groups.into_iter();
    let state = |record: Option<Result<(JobRecord, i32), WireError>>| match record {
        None => PriorJob::Absent,
        Some(Err(_)) => PriorJob::Unreadable,
        Some(Ok((record, version))) => {
            let group = if record.spawned { groups.next().flatten() } else { None };
            let group = group.map(|node| wire::decode::<GroupRecord>(&node.data));
            PriorJob::of(record, version, group)
        }
    };
    Ok(records.into_iter().map(state).collect())
}

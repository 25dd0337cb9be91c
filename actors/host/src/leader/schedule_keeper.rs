//! The schedule keeper: makes the job of each schedule's tick.

use bellwether_core::job::JobRecord;
use bellwether_core::machine::schedule::{self, Effect, Event, Found, Key, LastJob, Stamp};
use bellwether_core::metric;
use bellwether_core::name::{JobId, ScheduleId};
use bellwether_core::outcome::Outcome;
use bellwether_core::schedule::{ScheduleRecord, instant, lane};
use bellwether_core::txn::Batch;
use bellwether_core::{path, wire};
use bellwether_zk::{ChangeKind, Node, ReadError};
use metrics::{counter, gauge};
use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::alarm::Alarm;
use super::{Fenced, SWEEP, Term};
use crate::clock;
use crate::feed::{self, Feed};
use crate::spawn::actor;
use crate::task::{Owned, report, sweep};
use crate::trace::Ticking;
use crate::unreadable::Unreadable;

pub(super) struct ScheduleKeeper;

type Read<T> = Result<T, ReadError>;

pub(super) enum ScheduleKeeperMsg {
    Resume,
    Tick,
    Feed(Feed),
    Listed(Read<Option<(i32, Vec<String>)>>),
    Read(Vec<ScheduleId>, Read<Vec<Option<Node>>>),
    JobsRead(Vec<(Key, JobId)>, Read<Vec<Option<Node>>>),
    LaneMade(Key, Outcome<()>),
    Committed(Batch<Key>, Outcome<()>),
    Sweep,
}

actor!(ScheduleKeeper, "schedule_keeper", ScheduleKeeperMsg {
    Resume,
    Tick,
    Feed => Feed,
    Listed,
    Read,
    JobsRead,
    LaneMade,
    Committed,
    Sweep,
});

pub(super) struct State {
    term: Term,
    fenced: Fenced,
    machine: schedule::Keeper,
    unreadable: Unreadable,
    _feed: Owned,
    _sweep: Owned,
    alarm: Alarm,
}

impl Actor for ScheduleKeeper {
    type Msg = ScheduleKeeperMsg;
    type State = State;
    type Arguments = (Term, Fenced);

    async fn pre_start(
        &self,
        myself: ActorRef<ScheduleKeeperMsg>,
        (term, fenced): Self::Arguments,
    ) -> Result<State, ActorProcessingErr> {
        let _feed = feed::watch(&term.zk, path::SCHEDULES.into(), &myself, ScheduleKeeperMsg::Feed);
        let machine = schedule::Keeper::new(term.epoch);
        let _sweep = sweep(&myself, SWEEP, || ScheduleKeeperMsg::Sweep);
        let alarm = Alarm::start(&myself, || ScheduleKeeperMsg::Tick);
        Ok(State { term, fenced, machine, unreadable: Unreadable::default(), _feed, _sweep, alarm })
    }

    async fn handle(
        &self,
        myself: ActorRef<ScheduleKeeperMsg>,
        message: ScheduleKeeperMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            ScheduleKeeperMsg::Resume => {
                let path = path::SCHEDULES.into();
                state._feed = feed::watch(&state.term.zk, path, &myself, ScheduleKeeperMsg::Feed);
            }
            ScheduleKeeperMsg::Sweep => {
                state.feed(&myself, Event::Resync);
                state._sweep = sweep(&myself, SWEEP, || ScheduleKeeperMsg::Sweep);
            }
            ScheduleKeeperMsg::Tick => state.feed(&myself, Event::Tick),
            ScheduleKeeperMsg::Feed(Feed::Watching) => state.feed(&myself, Event::Resync),
            ScheduleKeeperMsg::Feed(Feed::Changes(changes)) => {
                for change in changes {
                    let path::Place::Schedule(schedule) = change.place else { continue };
                    let event = match change.kind {
                        ChangeKind::Created | ChangeKind::DataChanged => Event::Changed(schedule),
                        ChangeKind::Deleted => Event::Gone(schedule),
                    };
                    state.feed(&myself, event);
                }
            }
            ScheduleKeeperMsg::Listed(Ok(listed)) => {
                // An operator may have removed the parent, too; nodes make it again when they connect.
                let (removals, names) = listed.unwrap_or((0, Vec::new()));
                let schedules = names.iter().filter_map(|name| ScheduleId::new(name).ok()).collect();
                state.feed(&myself, Event::Listed { removals, schedules });
            }
            // The session's return, or the next sweep, lists again.
            ScheduleKeeperMsg::Listed(Err(error)) => {
                tracing::debug!(%error, "the schedules were not listed");
                state.feed(&myself, Event::ListFailed);
            }
            ScheduleKeeperMsg::Read(schedules, Ok(nodes)) => {
                let found = schedules.into_iter().zip(nodes).map(|(schedule, node)| {
                    let found = state.found(&schedule, node);
                    (schedule, found)
                });
                let event = Event::Read(found.collect());
                state.feed(&myself, event);
            }
            ScheduleKeeperMsg::Read(schedules, Err(_)) => state.feed(&myself, Event::ReadFailed(schedules)),
            ScheduleKeeperMsg::JobsRead(jobs, Ok(nodes)) => {
                let jobs = jobs.into_iter().zip(nodes).map(|((key, _), node)| (key, last_job(node.as_ref())));
                state.feed(&myself, Event::JobsRead(jobs.collect()));
            }
            ScheduleKeeperMsg::JobsRead(jobs, Err(_)) => {
                let keys = jobs.into_iter().map(|(key, _)| key).collect();
                state.feed(&myself, Event::JobsReadFailed(keys));
            }
            ScheduleKeeperMsg::LaneMade(key, outcome) => {
                // Whether it is there, the commit that needs it tells.
                tracing::debug!(schedule = %key.schedule, ?outcome, "the lane of a schedule was made");
                state.feed(&myself, Event::LaneMade(key));
            }
            ScheduleKeeperMsg::Committed(batch, outcome) => {
                state.feed(&myself, Event::Committed(batch, outcome));
            }
        }
        Ok(())
    }
}

impl State {
    fn feed(&mut self, myself: &ActorRef<ScheduleKeeperMsg>, event: Event) {
        let now = clock::wall();
        let ticked = event == Event::Tick;
        let mut effects = Vec::new();
        self.machine.handle(now, event, &mut effects);
        let zk = &self.term.zk;
        for effect in effects {
            match effect {
                Effect::List => {
                    // Asked for in this order, so that what is listed is not older than the version.
                    let parent = zk.get(path::SCHEDULES.into());
                    let children = zk.children(path::SCHEDULES.into());
                    let listed = async move {
                        let parent = parent.await?;
                        let children = children.await?;
                        Ok(parent.map(|parent| parent.version).zip(children))
                    };
                    report(myself, listed, ScheduleKeeperMsg::Listed);
                }
                Effect::Read(schedules) => {
                    let paths = schedules.iter().map(path::schedule).collect();
                    report(myself, zk.get_many(paths), move |nodes| {
                        ScheduleKeeperMsg::Read(schedules, nodes)
                    });
                }
                Effect::ReadJobs(jobs) => {
                    let paths = jobs.iter().map(|(_, job)| path::record(job)).collect();
                    report(myself, zk.get_many(paths), move |nodes| ScheduleKeeperMsg::JobsRead(jobs, nodes));
                }
                Effect::MakeLane(key) => {
                    let made = zk.create_container(path::lane(&lane(&key.schedule)));
                    report(myself, made, move |outcome| ScheduleKeeperMsg::LaneMade(key, outcome));
                }
                Effect::Commit(mut batch) => {
                    let ticking = Ticking::begin(&mut batch);
                    let committed = zk.commit_batch(batch);
                    report(myself, committed, |(batch, outcome)| {
                        ticking.end(&outcome);
                        ScheduleKeeperMsg::Committed(batch, outcome)
                    });
                }
                Effect::Ticked(schedule, at) => {
                    tracing::debug!(%schedule, tick = instant::text(at), "ticked");
                    counter!(metric::TICKS).increment(1);
                }
                Effect::PassedOver(schedule, passed) => {
                    let (why, ticks) = (passed.why.as_str(), passed.ticks);
                    let (from, through) = (instant::text(ticks.from), instant::text(ticks.through));
                    tracing::warn!(%schedule, why, from, through, count = ticks.count, "ticks were passed over");
                    counter!(metric::TICKS_PASSED_OVER, "why" => why).increment(u64::from(ticks.count));
                }
                Effect::FencedOut => self.fenced.tell(),
            }
        }
        self.alarm.set(myself, now, self.machine.next_due(), ticked, || ScheduleKeeperMsg::Tick);
        #[expect(clippy::cast_precision_loss, reason = "a gauge is a float, and no count comes near 2^53")]
        gauge!(metric::SCHEDULES).set(self.machine.len() as f64);
    }

    /// What is known is not decoded again: a sweep reads everything, and a calendar is some work to check.
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

/// One that cannot be read is not known to be over.
fn last_job(node: Option<&Node>) -> LastJob {
    let Some(node) = node else { return LastJob::Over(None) };
    match wire::decode::<JobRecord>(&node.data) {
        Ok(record) if record.is_terminal() => LastJob::Over(Some(node.version)),
        Ok(_) | Err(_) => LastJob::Open,
    }
}

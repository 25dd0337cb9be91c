//! The group joiner: takes groups from stage to stage.

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::group::Stage;
use bellwether_core::machine::group::{Effect, Event, Joiner, Look};
use bellwether_core::metric;
use bellwether_core::name::GroupId;
use bellwether_core::path::{self, Bucket, GroupPlace, Place};
use bellwether_zk::{ChangeKind, ReadResult, Zk};
use metrics::gauge;
use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::{Fenced, SWEEP, Term};
use crate::clock;
use crate::feed::{self, Feed};
use crate::group;
use crate::spawn::actor;
use crate::task::{Owned, report, sweep};

pub(super) struct GroupJoiner;

pub(super) enum GroupJoinerMsg {
    Resume,
    Sweep,
    Feed(Feed),
    Listed(ReadResult<Vec<GroupId>>),
    Joiner(Event),
}

actor!(GroupJoiner, "group_joiner", GroupJoinerMsg {
    Resume,
    Sweep,
    Feed => Feed,
    Listed,
    Joiner => Event,
});

pub(super) struct State {
    term: Term,
    fenced: Fenced,
    machine: Joiner,
    _feed: Owned,
    _sweep: Owned,
}

impl Actor for GroupJoiner {
    type Msg = GroupJoinerMsg;
    type State = State;
    type Arguments = (Term, Fenced);

    async fn pre_start(
        &self,
        myself: ActorRef<GroupJoinerMsg>,
        (term, fenced): Self::Arguments,
    ) -> Result<State, ActorProcessingErr> {
        let _feed = feed::watch(&term.zk, path::GROUPS.into(), &myself, GroupJoinerMsg::Feed);
        let _sweep = sweep(&myself, SWEEP, || GroupJoinerMsg::Sweep);
        let machine = Joiner::new(term.epoch);
        Ok(State { term, fenced, machine, _feed, _sweep })
    }

    async fn handle(
        &self,
        myself: ActorRef<GroupJoinerMsg>,
        message: GroupJoinerMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            GroupJoinerMsg::Resume => {
                state._feed = feed::watch(&state.term.zk, path::GROUPS.into(), &myself, GroupJoinerMsg::Feed);
            }
            GroupJoinerMsg::Sweep => {
                state.list(&myself);
                state._sweep = sweep(&myself, SWEEP, || GroupJoinerMsg::Sweep);
            }
            GroupJoinerMsg::Feed(Feed::Watching) => state.list(&myself),
            GroupJoinerMsg::Feed(Feed::Changes(changes)) => {
                for change in changes {
                    let Place::Group(place) = change.place else { continue };
                    if let Some(event) = event(place, change.kind) {
                        state.feed(&myself, event);
                    }
                }
            }
            GroupJoinerMsg::Listed(Ok(groups)) => {
                state.feed(&myself, Event::Seen(groups));
                state.feed(&myself, Event::Resync);
            }
            // The session's return, or the next sweep, lists again.
            GroupJoinerMsg::Listed(Err(error)) => tracing::debug!(%error, "the groups were not listed"),
            GroupJoinerMsg::Joiner(event) => state.feed(&myself, event),
        }
        Ok(())
    }
}

impl State {
    fn list(&self, myself: &ActorRef<GroupJoinerMsg>) {
        report(myself, list(self.term.zk.clone()), GroupJoinerMsg::Listed);
    }

    fn feed(&mut self, myself: &ActorRef<GroupJoinerMsg>, event: Event) {
        let mut effects = Vec::new();
        self.machine.handle(clock::wall(), event, &mut effects);
        let zk = &self.term.zk;
        let answer = GroupJoinerMsg::Joiner;
        for effect in effects {
            match effect {
                Effect::Look(group) => {
                    let zk = zk.clone();
                    let looked = async move {
                        let look = group::look(&zk, &group).await.unwrap_or(Look::NotAnswered);
                        Event::Looked(group, look)
                    };
                    report(myself, looked, answer);
                }
                Effect::Commit(group, ops) => {
                    report(myself, zk.commit(ops), move |outcome| answer(Event::Committed(group, outcome)));
                }
                Effect::Find(group, from) => {
                    let zk = zk.clone();
                    let found = async move {
                        let found = group::rest(&zk, &group, from).await.map_err(|_| ());
                        Event::Found(group, found)
                    };
                    report(myself, found, answer);
                }
                Effect::Cancel(group, batch) => {
                    let committed = zk.commit_batch(batch);
                    report(myself, committed, move |(batch, outcome)| {
                        answer(Event::Cancelled(group, batch, outcome))
                    });
                }
                Effect::Advanced(group, record) => match record.stage {
                    Stage::Open => tracing::debug!(%group, total = ?record.total, "counted"),
                    Stage::Joining | Stage::Finishing | Stage::Done { .. } => {
                        tracing::info!(%group, stage = ?record.stage, stopped = ?record.stopped, "a group went on");
                    }
                },
                Effect::Stuck(group, why) => {
                    tracing::error!(%group, why, "a group cannot go on until that is mended");
                }
                Effect::FencedOut => self.fenced.tell(),
            }
        }
        gauge!(metric::GROUPS).set(u32::try_from(self.machine.open()).unwrap_or(u32::MAX));
    }
}

fn event(place: GroupPlace, kind: ChangeKind) -> Option<Event> {
    match (place, kind) {
        (GroupPlace::Record(group), ChangeKind::Created | ChangeKind::DataChanged) => {
            Some(Event::Changed(group))
        }
        (GroupPlace::Record(group), ChangeKind::Deleted) => Some(Event::Gone(group)),
        (GroupPlace::Mark(group, mark, end), ChangeKind::Created) => Some(Event::Ended(group, mark, end)),
        // A mark goes with a retry, which changes the record too; places are not watched.
        (GroupPlace::Mark(..), ChangeKind::DataChanged | ChangeKind::Deleted)
        | (GroupPlace::Member(..), _) => None,
    }
}

/// Every group there is: as many names as groups that retention has not removed yet.
async fn list(zk: Zk) -> ReadResult<Vec<GroupId>> {
    let buckets = Bucket::all().map(Bucket::groups).collect::<Vec<_>>();
    let mut groups = Vec::new();
    for buckets in buckets.chunks(MAX_READ_BATCH) {
        let lists = zk.children_many(buckets.to_vec()).await?;
        groups.extend(lists.into_iter().flatten().flatten().filter_map(|name| GroupId::new(name).ok()));
    }
    Ok(groups)
}

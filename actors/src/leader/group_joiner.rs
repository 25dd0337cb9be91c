//! The group joiner: advances groups from stage to stage.

use std::sync::Arc;

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::chain::chain;
use bellwether_core::group::{Stage, Stop};
use bellwether_core::machine::group_joiner::{self, Effect, Event, Lookup};
use bellwether_core::metric;
use bellwether_core::name::GroupId;
use bellwether_core::path::{self, Bucket, GroupPlace, Place};
use bellwether_core::port::{ChangeKind, ReadResult, Requests};
use metrics::gauge;

use super::{FencedOut, SWEEP};
use crate::group;
use crate::{Concern, Context, Feed};

/// The watch and the timer of the group joiner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// The watch on the groups.
    Groups,
    /// The periodic listing.
    Sweep,
}

/// Advances groups from stage to stage, in one term.
pub struct GroupJoiner {
    machine: group_joiner::GroupJoiner,
}

/// Messages to the group joiner.
pub enum GroupJoinerMsg {
    /// The term is active again.
    Resume,
    /// The periodic listing is due.
    Sweep,
    /// From the watch on the groups.
    Feed(Feed),
    /// All groups.
    Listed(ReadResult<Vec<GroupId>>),
    /// The answer to an effect of the machine.
    Event(Event),
}

kinds!(GroupJoinerMsg { Resume, Sweep, Feed => Feed, Listed, Event => Event });

impl Concern for GroupJoiner {
    const NAME: &'static str = "group_joiner";
    type Msg = GroupJoinerMsg;
    /// The epoch of the term.
    type Args = i32;
    type Key = Key;
    type Tell = FencedOut;

    fn start(cx: &mut Context<'_, Self>, epoch: i32) -> Self {
        watch(cx);
        cx.sweep(Key::Sweep, SWEEP, GroupJoinerMsg::Sweep);
        Self { machine: group_joiner::GroupJoiner::new(epoch) }
    }

    fn handle(&mut self, cx: &mut Context<'_, Self>, msg: GroupJoinerMsg) {
        match msg {
            GroupJoinerMsg::Resume => watch(cx),
            GroupJoinerMsg::Sweep => {
                list(cx);
                cx.sweep(Key::Sweep, SWEEP, GroupJoinerMsg::Sweep);
            }
            GroupJoinerMsg::Feed(Feed::Watching) => list(cx),
            GroupJoinerMsg::Feed(Feed::Changes(changes)) => {
                for change in changes {
                    let Place::Group(place) = change.place else { continue };
                    if let Some(event) = event(place, change.kind) {
                        self.feed(cx, event);
                    }
                }
            }
            GroupJoinerMsg::Listed(Ok(groups)) => {
                self.feed(cx, Event::Seen(groups));
                self.feed(cx, Event::Resync);
            }
            // The next reconnect or sweep lists again.
            GroupJoinerMsg::Listed(Err(error)) => {
                tracing::debug!(error = %chain(&error), "the leader cannot list the groups")
            }
            GroupJoinerMsg::Event(event) => self.feed(cx, event),
        }
    }
}

fn watch(cx: &mut Context<'_, GroupJoiner>) {
    cx.watch(Key::Groups, path::GROUPS.into(), GroupJoinerMsg::Feed);
}

fn list(cx: &mut Context<'_, GroupJoiner>) {
    cx.task(|zk| async move { GroupJoinerMsg::Listed(every_group(zk).await) });
}

impl GroupJoiner {
    fn feed(&mut self, cx: &mut Context<'_, Self>, event: Event) {
        let mut effects = Vec::new();
        self.machine.handle(cx.wall, event, &mut effects);
        let answer = GroupJoinerMsg::Event;
        for effect in effects {
            match effect {
                Effect::Look(group) => cx.task(move |zk| async move {
                    let look = group::look(&*zk, &group).await.unwrap_or(Lookup::NotAnswered);
                    answer(Event::Looked(group, look))
                }),
                Effect::Commit(group, ops) => {
                    cx.commit(ops, move |_, outcome| Some(answer(Event::Committed(group, outcome))))
                }
                Effect::Find(group, from) => cx.task(move |zk| async move {
                    let found = group::rest(&*zk, &group, from).await.map_err(|_| ());
                    answer(Event::Found(group, found))
                }),
                Effect::Cancel(group, batch) => cx.commit_batch(batch, move |batch, outcome| {
                    answer(Event::Cancelled(group, batch, outcome))
                }),
                Effect::Advanced(group, record) if record.stopped == Some(Stop::Abandoned) => {
                    tracing::warn!(%group, stage = ?record.stage, "the group is abandoned: its client did not submit all members or seal it");
                }
                Effect::Advanced(group, record) => match record.stage {
                    Stage::Open => {
                        tracing::debug!(%group, total = ?record.total, "the leader counted the members of the group")
                    }
                    Stage::Joining | Stage::Finishing | Stage::Done { .. } => {
                        tracing::info!(%group, stage = ?record.stage, stopped = ?record.stopped, "the group has entered a new stage");
                    }
                },
                Effect::Stuck(group, why) => {
                    tracing::error!(%group, reason = why, "the group cannot continue until an operator repairs it");
                }
                Effect::FencedOut => cx.tell(FencedOut),
            }
        }
        gauge!(metric::UNFINISHED_GROUPS).set(u32::try_from(self.machine.open()).unwrap_or(u32::MAX));
    }
}

fn event(place: GroupPlace, kind: ChangeKind) -> Option<Event> {
    match (place, kind) {
        (GroupPlace::Record(group), ChangeKind::Created | ChangeKind::DataChanged) => {
            Some(Event::Changed(group))
        }
        (GroupPlace::Record(group), ChangeKind::Deleted) => Some(Event::Gone(group)),
        (GroupPlace::Mark(group, mark, end), ChangeKind::Created) => Some(Event::Ended(group, mark, end)),
        // A retry deletes a mark and changes the record. Places are not watched.
        (GroupPlace::Mark(..), ChangeKind::DataChanged | ChangeKind::Deleted)
        | (GroupPlace::Member(..), _) => None,
    }
}

/// Lists every group that retention has not removed yet.
async fn every_group(zk: Arc<dyn Requests>) -> ReadResult<Vec<GroupId>> {
    let buckets = Bucket::all().map(Bucket::groups).collect::<Vec<_>>();
    let mut groups = Vec::new();
    for buckets in buckets.chunks(MAX_READ_BATCH) {
        let lists = zk.children_many(buckets.to_vec()).await?;
        groups.extend(lists.into_iter().flatten().flatten().filter_map(|name| GroupId::new(name).ok()));
    }
    Ok(groups)
}

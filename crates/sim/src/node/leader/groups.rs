//! The group joiner: feeds core's [`Joiner`], as `actors/src/leader/group_joiner.rs` does.

use bellwether_core::machine::group::{Effect, Event, Joiner, Look};
use bellwether_core::name::GroupId;
use bellwether_core::path::{self, GroupPlace, Place as ZnodePlace};
use bellwether_keeper::proto::{EventKind, WatchedEvent};

use super::{Place, SWEEP};
use crate::node::context::Context;
use crate::zk::ReadResult;

pub(crate) enum GroupsMsg {
    Resume,
    Sweep,
    Watching(bool),
    Changed(WatchedEvent),
    Listed(ReadResult<Vec<GroupId>>),
    Joiner(Event),
}

pub(super) struct Groups {
    place: Place,
    machine: Joiner,
}

impl Groups {
    pub(super) fn start(cx: &mut Context<'_>, place: Place) -> Self {
        let groups = Self { place, machine: Joiner::new(place.term.epoch) };
        groups.watch(cx);
        groups.sweep(cx);
        groups
    }

    fn watch(&self, cx: &mut Context<'_>) {
        let place = self.place;
        cx.watch(
            place.term.zk,
            path::GROUPS,
            move |set| place.groups(GroupsMsg::Watching(set)),
            move |event| place.groups(GroupsMsg::Changed(event.clone())),
        );
    }

    fn sweep(&self, cx: &mut Context<'_>) {
        cx.after(SWEEP, self.place.groups(GroupsMsg::Sweep));
    }

    fn list(&self, cx: &mut Context<'_>) {
        let place = self.place;
        cx.begin(move |shell| async move {
            let listed = shell.groups(place.term.zk).await;
            shell.tell(place.groups(GroupsMsg::Listed(listed)));
        });
    }

    pub(super) fn handle(&mut self, cx: &mut Context<'_>, msg: GroupsMsg) {
        match msg {
            GroupsMsg::Resume => self.watch(cx),
            GroupsMsg::Sweep => {
                self.list(cx);
                self.sweep(cx);
            }
            GroupsMsg::Watching(false) => {}
            GroupsMsg::Watching(true) => self.list(cx),
            GroupsMsg::Changed(event) => {
                let ZnodePlace::Group(place) = path::parse(&event.path) else { return };
                if let Some(event) = heard(place, event.kind) {
                    self.feed(cx, event);
                }
            }
            GroupsMsg::Listed(Ok(groups)) => {
                self.feed(cx, Event::Seen(groups));
                self.feed(cx, Event::Resync);
            }
            // The session's return, or the next sweep, lists again.
            GroupsMsg::Listed(Err(_)) => {}
            GroupsMsg::Joiner(event) => self.feed(cx, event),
        }
    }

    fn feed(&mut self, cx: &mut Context<'_>, event: Event) {
        let (zk, place) = (self.place.term.zk, self.place);
        let answer = move |event| place.groups(GroupsMsg::Joiner(event));
        let mut effects = Vec::new();
        self.machine.handle(cx.wall(), event, &mut effects);
        for effect in effects {
            match effect {
                Effect::Look(group) => cx.begin(move |shell| async move {
                    let look = shell.look_at(zk, &group).await.unwrap_or(Look::NotAnswered);
                    shell.tell(answer(Event::Looked(group, look)));
                }),
                Effect::Commit(group, ops) => {
                    cx.commit(zk, &ops, move |outcome| answer(Event::Committed(group, outcome)));
                }
                Effect::Find(group, from) => cx.begin(move |shell| async move {
                    let found = shell.rest_of(zk, &group, from).await.map_err(|_| ());
                    shell.tell(answer(Event::Found(group, found)));
                }),
                Effect::Cancel(group, batch) => cx.commit_batch(zk, batch, move |batch, outcome| {
                    answer(Event::Cancelled(group, batch, outcome))
                }),
                Effect::Advanced(..) | Effect::Stuck(..) => {}
                Effect::FencedOut => place.fenced_out(cx),
            }
        }
    }
}

fn heard(place: GroupPlace, kind: EventKind) -> Option<Event> {
    match (place, kind) {
        (GroupPlace::Record(group), EventKind::NodeCreated | EventKind::NodeDataChanged) => {
            Some(Event::Changed(group))
        }
        (GroupPlace::Record(group), EventKind::NodeDeleted) => Some(Event::Gone(group)),
        (GroupPlace::Mark(group, mark, end), EventKind::NodeCreated) => Some(Event::Ended(group, mark, end)),
        (
            GroupPlace::Mark(..),
            EventKind::NodeDataChanged
            | EventKind::NodeDeleted
            | EventKind::NodeChildrenChanged
            | EventKind::PersistentWatchRemoved,
        )
        | (GroupPlace::Record(_), EventKind::NodeChildrenChanged | EventKind::PersistentWatchRemoved)
        | (GroupPlace::Member(..), _) => None,
    }
}

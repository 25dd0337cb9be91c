//! The election's place in a process.

use std::time::Duration;

use bellwether_actors::election::{Election, ElectionMsg, Key, Tell};
use bellwether_actors::leader::wing::{self, LeaderWingMsg};
use bellwether_actors::session::SessionEvent as ToConcern;
use bellwether_actors::{Concern, Mail};
use bellwether_core::machine::election::leadership::Status;

use super::Msg;
use super::context::{Context, Out, Route};
use super::host::{Hosting, Letter};
use crate::history::Leading;
use crate::zk::{SessionEvent, View, Zk};

/// A message to the election of this life.
pub(crate) fn to(life: u64, msg: ElectionMsg) -> Msg {
    Msg::Election(life, Letter::Mail(msg.into()))
}

/// What a process knows of its election.
#[derive(Debug, Default)]
pub(crate) struct Links {
    status: Told,
    /// The process waits for the candidate to be gone.
    pub(crate) leaving: bool,
}

/// The status that the leader wing was told last. A wing that is started later is told it first.
#[derive(Debug, Clone, Copy, Default)]
enum Told {
    #[default]
    Inactive,
    Paused,
    Active(Zk, i32),
}

impl Links {
    /// The present status as a message to the leader wing.
    pub(crate) fn status(&self) -> Letter<LeaderWingMsg, wing::Key> {
        match self.status {
            Told::Inactive => Letter::Mail(LeaderWingMsg::Inactive.into()),
            Told::Paused => Letter::Mail(LeaderWingMsg::Paused.into()),
            Told::Active(zk, epoch) => Letter::Session(zk, LeaderWingMsg::Active(epoch)),
        }
    }

    /// The election has died: the process leads no more.
    pub(crate) fn withdraw(&mut self, cx: &mut Context<'_>) {
        self.status = Told::Inactive;
        cx.tell(Route::ElectionToLeader, Msg::Leader(cx.lives.leader, self.status()));
        cx.leads(cx.view.session, 0, Leading::Inactive, None);
        if self.leaving {
            cx.out.push(Out::Left);
        }
    }
}

/// A session event as a message to a concern.
pub(crate) fn session<C: Concern>(
    view: View,
    event: SessionEvent,
    msg: impl FnOnce(ToConcern) -> C::Msg,
) -> Letter<C::Msg, C::Key> {
    let event = match event {
        SessionEvent::Connected(zk) => {
            let timeout = Duration::from_micros(view.timeout_us);
            return Letter::Session(zk, msg(ToConcern::Connected { session: view.session, timeout }));
        }
        SessionEvent::Disconnected => ToConcern::Disconnected,
        SessionEvent::Reconnected => ToConcern::Reconnected,
        SessionEvent::Expired => ToConcern::Expired,
    };
    Letter::Mail(msg(event).into())
}

impl Hosting for Election {
    type Place = u64;
    type Links = Links;

    fn mail(life: u64, mail: Mail<ElectionMsg, Key>) -> Msg {
        Msg::Election(life, Letter::Mail(mail))
    }

    fn tell(links: &mut Links, _: u64, zk: Option<Zk>, cx: &mut Context<'_>, tell: Tell) {
        match tell {
            Tell::Standing { session, status, may_act_until: until } => match status {
                Status::Active(term) => cx.leads(session, term.epoch(), Leading::Active, until),
                Status::Paused(term, until) => {
                    cx.leads(session, term.epoch(), Leading::Paused, Some(until));
                }
                Status::Inactive(_) => cx.leads(session, 0, Leading::Inactive, None),
            },
            Tell::Status(status) => {
                links.status = match (status, zk) {
                    (Status::Active(term), Some(zk)) => Told::Active(zk, term.epoch()),
                    (Status::Active(term), None) => unreachable!("{term:?} without a session"),
                    (Status::Paused(..), _) => Told::Paused,
                    (Status::Inactive(_), _) => Told::Inactive,
                };
                cx.tell(Route::ElectionToLeader, Msg::Leader(cx.lives.leader, links.status()));
            }
            Tell::Left(_) => cx.out.push(Out::Left),
        }
    }
}

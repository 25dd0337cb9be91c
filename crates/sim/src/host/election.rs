//! The election's place in a process.

use bellwether_actors::Mail;
use bellwether_actors::election::{Election, ElectionMsg, Key, Tell};
use bellwether_actors::leader::wing::{self, LeaderWingMsg};
use bellwether_core::machine::election::leadership::{Inactive, LeadershipState};

use super::Msg;
use super::concern::{Hosting, Letter};
use super::context::{Context, Out, Route};
use crate::history::Leading;
use crate::zk::Zk;

/// A message to the election of this life.
pub(crate) fn to(life: u64, msg: ElectionMsg) -> Msg {
    Msg::Election(life, Letter::Mail(msg.into()))
}

/// What a process knows of its election.
pub(crate) struct Links {
    /// The state that the leader wing was told last, and its session. A wing that is started later is told it first.
    state: LeadershipState,
    zk: Option<Zk>,
    /// The process waits for the candidate to be gone.
    pub(crate) leaving: bool,
}

impl Default for Links {
    fn default() -> Self {
        Self { state: LeadershipState::Inactive(Inactive::Idle), zk: None, leaving: false }
    }
}

impl Links {
    /// The present state as a message to the leader wing.
    pub(crate) fn state(&self) -> Letter<LeaderWingMsg, wing::Key> {
        match (&self.state, self.zk) {
            (LeadershipState::Inactive(_), _) => Letter::Mail(LeaderWingMsg::Inactive.into()),
            (LeadershipState::Paused { .. }, _) => Letter::Mail(LeaderWingMsg::Paused.into()),
            (LeadershipState::Active(term), Some(zk)) => {
                Letter::Session(zk, LeaderWingMsg::Active(term.epoch()))
            }
            (LeadershipState::Active(term), None) => unreachable!("{term:?} without a session"),
        }
    }

    /// The election has died: the process leads no more.
    pub(crate) fn withdraw(&mut self, cx: &mut Context<'_>) {
        self.state = LeadershipState::Inactive(Inactive::Idle);
        cx.tell(Route::ElectionToLeader, Msg::Leader(cx.lives.leader, self.state()));
        cx.leads(cx.view.session, 0, Leading::Inactive, None);
        if self.leaving {
            cx.out.push(Out::Left);
        }
    }
}

impl Hosting for Election {
    type Address = u64;
    type Links = Links;

    fn mail(life: u64, mail: Mail<ElectionMsg, Key>) -> Msg {
        Msg::Election(life, Letter::Mail(mail))
    }

    fn tell(links: &mut Links, _: u64, zk: Option<Zk>, cx: &mut Context<'_>, tell: Tell) {
        match tell {
            Tell::Standing { session, state, may_act_until: until } => match state {
                LeadershipState::Active(term) => cx.leads(session, term.epoch(), Leading::Active, until),
                LeadershipState::Paused { term, until } => {
                    cx.leads(session, term.epoch(), Leading::Paused, Some(until));
                }
                LeadershipState::Inactive(_) => cx.leads(session, 0, Leading::Inactive, None),
            },
            Tell::State(state) => {
                (links.state, links.zk) = (state, zk);
                cx.tell(Route::ElectionToLeader, Msg::Leader(cx.lives.leader, links.state()));
            }
            Tell::Left(_) => cx.out.push(Out::Left),
        }
    }
}

//! Hosts the election of a process.

use bellwether_actors::Mail;
use bellwether_actors::election::{Election, ElectionMsg, Key, Tell};
use bellwether_actors::leader::wing::{self, LeaderWingMsg};
use bellwether_core::machine::election::leadership::{Inactive, LeadershipState};

use super::Msg;
use super::concern::{Hosting, Letter};
use super::context::{Context, Out, Route};
use crate::history::Leading;
use crate::zk::Zk;

/// Wraps a message to the election of this life.
pub(crate) fn to(life: u64, msg: ElectionMsg) -> Msg {
    Msg::Election(life, Letter::Mail(msg.into()))
}

/// The process's view of its election.
pub(crate) struct Links {
    /// The state last sent to the leader wing, and its session. A wing that starts later receives it first.
    state: LeadershipState,
    zk: Option<Zk>,
    /// Whether the process waits for its candidate to be removed.
    pub(crate) leaving: bool,
}

impl Default for Links {
    fn default() -> Self {
        Self { state: LeadershipState::Inactive(Inactive::Idle), zk: None, leaving: false }
    }
}

impl Links {
    /// Returns the current state as a message to the leader wing.
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

    /// The election has died: the process stops leading.
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

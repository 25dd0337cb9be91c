//! Hosts the election of a process.

use bellwether_actors::Mail;
use bellwether_actors::election::{Election, ElectionMsg, Key, Tell};
use bellwether_actors::leader::wing::{self, LeaderWingMsg};
use bellwether_core::machine::election::leadership::{Inactive, LeadershipState};
use bellwether_core::time::Millis;

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
    /// The epoch in which the process may act as the leader, and until when.
    permit: Option<(i32, Millis)>,
    /// Whether the process waits for its candidate to be removed.
    pub(crate) leaving: bool,
}

impl Default for Links {
    fn default() -> Self {
        let state = LeadershipState::Inactive(Inactive::Idle);
        Self { state, zk: None, permit: None, leaving: false }
    }
}

impl Links {
    /// The epoch in which the process may act as the leader now.
    pub(crate) fn leads_in(&self, now: Millis) -> Option<i32> {
        self.permit.filter(|(_, until)| now < *until).map(|(epoch, _)| epoch)
    }

    /// Returns the current state as a message to the leader wing.
    fn state(&self) -> Option<Letter<LeaderWingMsg, wing::Key>> {
        Some(match (&self.state, self.zk) {
            (LeadershipState::Inactive(_), _) => Letter::Mail(LeaderWingMsg::Inactive.into()),
            // The permission to act has ended with the pause, and the members send nothing without it.
            (LeadershipState::Paused { .. }, _) => return None,
            (LeadershipState::Active(term), Some(zk)) => {
                Letter::Session(zk, LeaderWingMsg::Active(term.epoch()))
            }
            (LeadershipState::Active(term), None) => unreachable!("{term:?} without a session"),
        })
    }

    /// Sends the current state to the leader wing.
    pub(crate) fn announce(&self, cx: &mut Context<'_>) {
        if let Some(letter) = self.state() {
            cx.tell(Route::ElectionToLeader, Msg::Leader(cx.lives.leader, letter));
        }
    }

    /// The election has died: the process stops leading.
    pub(crate) fn withdraw(&mut self, cx: &mut Context<'_>) {
        self.state = LeadershipState::Inactive(Inactive::Idle);
        self.permit = None;
        self.announce(cx);
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
            Tell::Standing { session, state, may_act_until } => {
                let epoch = match &state {
                    LeadershipState::Active(term) | LeadershipState::Paused { term, .. } => {
                        Some(term.epoch())
                    }
                    LeadershipState::Inactive(_) => None,
                };
                links.permit = epoch.zip(may_act_until);
                match state {
                    LeadershipState::Active(term) => {
                        cx.leads(session, term.epoch(), Leading::Active, may_act_until);
                    }
                    LeadershipState::Paused { term, until } => {
                        cx.leads(session, term.epoch(), Leading::Paused, until);
                    }
                    LeadershipState::Inactive(_) => cx.leads(session, 0, Leading::Inactive, None),
                }
            }
            Tell::State(state) => {
                (links.state, links.zk) = (state, zk);
                links.announce(cx);
            }
            Tell::Left(_) => cx.out.push(Out::Left),
        }
    }
}

//! The election's place in a process.

use std::time::Duration;

use bellwether_actors::election::{Election, ElectionMsg, Key, Tell};
use bellwether_actors::leader::wing::LeaderWingMsg;
use bellwether_actors::session::SessionEvent as ToConcern;
use bellwether_actors::{Concern, Mail};
use bellwether_core::machine::election::leadership::Status;

use super::Msg;
use super::context::{Context, Out, Route};
use super::host::{Hosting, Letter};
use crate::history::Leading;
use crate::zk::{SessionEvent, View, Zk};

/// A message to the election.
pub(crate) fn to(msg: ElectionMsg) -> Msg {
    Msg::Election(Letter::Mail(msg.into()))
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
    type Place = ();
    type Links = ();

    fn mail((): (), mail: Mail<ElectionMsg, Key>) -> Msg {
        Msg::Election(Letter::Mail(mail))
    }

    fn tell((): &mut (), (): (), zk: Option<Zk>, cx: &mut Context<'_>, tell: Tell) {
        match tell {
            Tell::Standing { session, status, may_act_until: until } => match status {
                Status::Active(term) => cx.leads(session, term.epoch(), Leading::Active, until),
                Status::Paused(term, until) => {
                    cx.leads(session, term.epoch(), Leading::Paused, Some(until));
                }
                Status::Inactive(_) => cx.leads(session, 0, Leading::Inactive, None),
            },
            Tell::Status(status) => {
                let letter = match (status, zk) {
                    (Status::Active(term), Some(zk)) => {
                        Letter::Session(zk, LeaderWingMsg::Active(term.epoch()))
                    }
                    (Status::Active(term), None) => unreachable!("{term:?} without a session"),
                    (Status::Paused(..), _) => Letter::Mail(LeaderWingMsg::Paused.into()),
                    (Status::Inactive(_), _) => Letter::Mail(LeaderWingMsg::Inactive.into()),
                };
                cx.tell(Route::ElectionToLeader, Msg::Leader(letter));
            }
            Tell::Left(_) => cx.out.push(Out::Left),
        }
    }
}

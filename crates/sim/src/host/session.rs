//! The session supervisor's place in a process, of a node or a client.
//!
//! The client library is the world's: it makes sessions, loses and regains connections, and gives sessions up. What follows
//! from that is the concern's: when to try again, what the parts and the clients hear, when a heartbeat is sent.

use std::convert::Infallible;
use std::mem::discriminant;
use std::time::Duration;

use bellwether_actors::election::{Election, ElectionMsg};
use bellwether_actors::session::{Args, Key, Made, Opaque, Session, SessionEvent, SessionMsg, Status, Tell};
use bellwether_actors::worker::wing::{WorkerWing, WorkerWingMsg};
use bellwether_actors::{Concern, Mail};

use super::Msg;
use super::concern::{Hosted, Hosting, Letter};
use super::context::{Context, Out, Route};
use crate::zk::ask::{self, Answer};
use crate::zk::{Published, Zk};

/// The concern, with what this host passes through it.
pub(crate) type Supervisor = Session<Passed>;

/// Names the types that pass through the concern.
pub(crate) enum Passed {}

impl Opaque for Passed {
    type Subscriber = Subscriber;
    /// The server refuses no namespace and no login.
    type Refusal = Infallible;
}

/// A part of the process, by its life, that receives session events.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Subscriber {
    Election(u64),
    Worker(u64),
}

#[derive(Default)]
pub(crate) struct Links {
    subscribers: Vec<Subscriber>,
}

pub(crate) fn start(cx: &mut Context<'_>, life: u64) -> Hosted<Supervisor> {
    let args = Args { to: "the simulated server".to_owned() };
    Hosted::supervise(cx, None, life, Links::default(), args)
}

/// A message to the supervisor of this life.
pub(crate) fn to(life: u64, msg: SessionMsg<Passed>) -> Msg {
    Msg::Session(life, Letter::Mail(msg.into()))
}

/// A session was made, and its namespace is open.
pub(crate) fn made(life: u64, zk: Zk, made: Made) -> Msg {
    Msg::Session(life, Letter::Session(zk, SessionMsg::Made(Ok(made))))
}

/// A part that has started hears every event from now on, beginning with the present one.
pub(crate) fn subscribe(cx: &mut Context<'_>, who: Subscriber) {
    cx.tell(Route::PartToSession, to(cx.lives.session, SessionMsg::Subscribe(who)));
}

impl Subscriber {
    fn hears(self, cx: &mut Context<'_>, zk: Zk, event: SessionEvent) {
        match self {
            Self::Election(life) => {
                let letter = letter::<Election>(zk, event, ElectionMsg::Session);
                cx.tell(Route::SessionToElection, Msg::Election(life, letter));
            }
            Self::Worker(life) => {
                let letter = letter::<WorkerWing>(zk, event, WorkerWingMsg::Session);
                cx.tell(Route::SessionToWorker, Msg::Worker(life, letter));
            }
        }
    }
}

/// A session event as a message to a concern.
fn letter<C: Concern>(
    zk: Zk,
    event: SessionEvent,
    msg: impl FnOnce(SessionEvent) -> C::Msg,
) -> Letter<C::Msg, C::Key> {
    match event {
        SessionEvent::Connected { .. } => Letter::Session(zk, msg(event)),
        SessionEvent::Disconnected | SessionEvent::Reconnected | SessionEvent::Expired => {
            Letter::Mail(msg(event).into())
        }
    }
}

impl Hosting for Supervisor {
    type Address = u64;
    type Links = Links;

    fn mail(life: u64, mail: Mail<SessionMsg<Passed>, Key>) -> Msg {
        Msg::Session(life, Letter::Mail(mail))
    }

    fn tell(links: &mut Links, life: u64, zk: Option<Zk>, cx: &mut Context<'_>, tell: Tell<Passed>) {
        let zk = || zk.expect("a session was made");
        match tell {
            Tell::Connect => cx.out.push(Out::Connect),
            Tell::Follow(generation) => cx.out.push(Out::Follow(generation, zk())),
            Tell::Forget => cx.out.push(Out::Forget),
            Tell::Status(status) => cx.out.push(Out::Publish(match status {
                Status::Connecting { error } => Published::Connecting { error },
                Status::Connected => Published::Connected(zk()),
                Status::Disconnected => Published::Disconnected,
            })),
            Tell::Event(event) => {
                cx.out.push(Out::Session(event));
                links.subscribers.iter().for_each(|subscriber| subscriber.hears(cx, zk(), event));
            }
            Tell::Greet(subscriber, events) => {
                events.into_iter().for_each(|event| subscriber.hears(cx, zk(), event));
                // A part that is started again takes the place of the one that ended.
                links.subscribers.retain(|other| discriminant(other) != discriminant(&subscriber));
                links.subscribers.push(subscriber);
            }
            Tell::Heartbeat(generation) => {
                // How long it took is a metric only.
                let round_trip = |answer: Answer| ask::answered(answer).is_ok().then_some(Duration::ZERO);
                let then = move |answer| to(life, SessionMsg::Answered(generation, round_trip(answer)));
                cx.out.push(Out::Heartbeat { zk: zk(), then: Box::new(then) });
            }
            Tell::Refuse(never) => match never {},
        }
    }
}

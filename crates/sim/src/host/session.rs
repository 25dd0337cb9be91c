//! Hosts the session supervisor of a process, of a node or a client.
//!
//! The world implements the client library: it creates sessions, loses and restores connections, and gives sessions up.
//! The concern decides what follows: when to retry, which events the parts and the clients receive, and when to send a
//! heartbeat.

use std::convert::Infallible;
use std::mem::discriminant;
use std::time::Duration;

use bellwether_actors::election::{Election, ElectionMsg};
use bellwether_actors::session::{Args, Key, Made, Opaque, Session, SessionEvent, SessionMsg, Status, Tell};
use bellwether_actors::worker::wing::{WorkerWing, WorkerWingMsg};
use bellwether_actors::{Concern, Mail};
use bellwether_core::clock::Reading;
use bellwether_core::clock_report::Process;

use super::Msg;
use super::concern::{Hosted, Hosting, Letter};
use super::context::{Context, Out, Route};
use crate::zk::protocol::{self, Answer};
use crate::zk::{Published, Zk};

/// The concern, with the types that this host passes through it.
pub(crate) type Supervisor = Session<Passed>;

/// Names the types that pass through the concern.
pub(crate) enum Passed {}

impl Opaque for Passed {
    type Subscriber = Subscriber;
    /// The simulated server rejects no namespace and no login.
    type Refusal = Infallible;
}

/// A part of the process, with its life, that receives session events.
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
    let process = Process { node: None, host: "a simulated machine".to_owned() };
    let args = Args {
        owner: "test".to_owned(),
        to: "the simulated server".to_owned(),
        reads_clock: Some(process),
        is_trusted: true,
    };
    Hosted::supervise(cx, None, life, Links::default(), args)
}

/// Wraps a message to the supervisor of this life.
pub(crate) fn to(life: u64, msg: SessionMsg<Passed>) -> Msg {
    Msg::Session(life, Letter::Mail(msg.into()))
}

/// Wraps the message that a session was created and its namespace is open.
pub(crate) fn made(life: u64, zk: Zk, made: Made) -> Msg {
    Msg::Session(life, Letter::Session(zk, SessionMsg::Made(Ok(made))))
}

/// Subscribes a part that has started to all session events from now on, beginning with the current state.
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

/// Wraps a session event as a message to a concern.
fn letter<C: Concern>(
    zk: Zk,
    event: SessionEvent,
    msg: impl FnOnce(SessionEvent) -> C::Msg,
) -> Letter<C::Msg, C::Key> {
    match event {
        SessionEvent::Connected { .. } => Letter::Session(zk, msg(event)),
        SessionEvent::Disconnected
        | SessionEvent::Reconnected
        | SessionEvent::Expired
        | SessionEvent::Clock { .. } => Letter::Mail(msg(event).into()),
    }
}

impl Hosting for Supervisor {
    type Address = u64;
    type Links = Links;

    fn mail(life: u64, mail: Mail<SessionMsg<Passed>, Key>) -> Msg {
        Msg::Session(life, Letter::Mail(mail))
    }

    fn tell(links: &mut Links, life: u64, zk: Option<Zk>, cx: &mut Context<'_>, tell: Tell<Passed>) {
        let zk = || zk.expect("the concern has created a session");
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
                // A restarted part replaces its predecessor.
                links.subscribers.retain(|other| discriminant(other) != discriminant(&subscriber));
                links.subscribers.push(subscriber);
            }
            Tell::Heartbeat(generation) => {
                // The round trip is used only as a metric.
                let round_trip =
                    |answer: Answer| protocol::answered(answer).is_ok().then_some(Duration::ZERO);
                let then = move |answer| to(life, SessionMsg::Answered(generation, round_trip(answer)));
                cx.out.push(Out::Heartbeat { zk: zk(), then: Box::new(then) });
            }
            Tell::ReadClock(generation) => {
                let sent = cx.now();
                let then = move |answer: Answer| {
                    let reading = protocol::clock(answer).map(|server| Reading { sent, server });
                    to(life, SessionMsg::Clock(generation, reading))
                };
                cx.ask(zk(), protocol::read_clock(), then);
            }
            Tell::Clock(clock) => cx.out.push(Out::SetClock(clock)),
            // All simulated servers grant the same timeout, at all times.
            Tell::AskTimeouts(_) | Tell::Shorten(_) => {}
            Tell::Refuse(never) => match never {},
        }
    }
}

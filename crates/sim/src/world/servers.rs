//! ZooKeeper as the processes see it: one server, or an ensemble.

use bellwether_keeper::proto::Request;
use fastrand::Rng;

use super::Up;
use super::ensemble::{Ensemble, MEMBERS, Step};
use super::server::{Outcome, Server};
use crate::history::EventKind;
use crate::plan::Plan;
use crate::zk::library::Conn;

pub(super) enum Servers {
    One(Server),
    Three(Box<Ensemble>),
}

impl Servers {
    /// Creates the servers with the namespace, and the events of its creation.
    pub(super) fn new(plan: &Plan) -> (Self, Vec<EventKind>) {
        let mut server = Server::new(plan.tick_ms);
        let history = server.lay_out(plan.retention_ms, &plan.schedules);
        let servers = match plan.sync_limit {
            None => Self::One(server),
            Some(limit) => {
                Self::Three(Box::new(Ensemble::new(plan.tick_ms, limit, plan.seed, &server.snapshot())))
            }
        };
        (servers, history)
    }

    /// Picks the server of a new connection. Returns `None` if it accepts none.
    pub(super) fn pick(&self, rng: &mut Rng) -> Option<usize> {
        match self {
            Self::One(server) => server.is_up().then_some(0),
            Self::Three(ensemble) => {
                let member = rng.usize(..MEMBERS);
                ensemble.serving().contains(&member).then_some(member)
            }
        }
    }

    pub(super) fn handle(&mut self, now_us: u64, member: usize, conn: Conn, frame: Up) -> Outcome {
        match self {
            Self::One(server) => server.handle(now_us, conn, frame),
            Self::Three(ensemble) => ensemble.handle(now_us, member, conn, frame),
        }
    }

    pub(super) fn session_of(&self, conn: Conn) -> Option<i64> {
        match self {
            Self::One(server) => server.session_of(conn),
            Self::Three(ensemble) => ensemble.session_of(conn),
        }
    }

    pub(super) fn late(&mut self, now_us: u64, session: i64, request: Request) -> Outcome {
        match self {
            Self::One(server) => server.late(now_us, session, request),
            Self::Three(ensemble) => ensemble.late(now_us, session, request),
        }
    }

    pub(super) fn expire(&mut self, now_us: u64, session: i64) -> Outcome {
        match self {
            Self::One(server) => server.expire(session),
            Self::Three(ensemble) => ensemble.expire(now_us, session),
        }
    }

    pub(super) fn tick(&mut self, now_us: u64) -> Outcome {
        match self {
            Self::One(server) => server.tick(now_us),
            Self::Three(_) => Outcome::default(),
        }
    }

    /// Returns when [`tick`](Self::tick) has work to do. An ensemble has its own events.
    pub(super) fn next_tick_us(&self) -> Option<u64> {
        match self {
            Self::One(server) => server.next_tick_us(),
            Self::Three(_) => None,
        }
    }

    /// Returns the first event of an ensemble.
    pub(super) fn first_step(&self) -> Option<(u64, Step)> {
        match self {
            Self::One(_) => None,
            Self::Three(ensemble) => Some((ensemble.next_beat_us(), Step::Beat)),
        }
    }

    pub(super) fn step(&mut self, now_us: u64, step: Step) -> Outcome {
        match self {
            Self::One(_) => Outcome::default(),
            Self::Three(ensemble) => ensemble.step(now_us, step),
        }
    }

    pub(super) fn ensemble(&mut self) -> Option<&mut Ensemble> {
        match self {
            Self::One(_) => None,
            Self::Three(ensemble) => Some(ensemble),
        }
    }
}

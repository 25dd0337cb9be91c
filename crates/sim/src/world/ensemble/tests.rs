//! Proposals at a change of the leader, and clients that lose their member.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_core::txn::{self, Lifetime};
use bellwether_keeper::model::ConnectionId;
use bellwether_keeper::proto::{ConnectRequest, ConnectResponse};

use super::super::Up;
use super::super::server::Server;
use super::super::servers::Servers;
use super::*;
use crate::zk::protocol;

const TICK_MS: u64 = 500;
const SYNC_LIMIT: u64 = 10;
const SECOND_US: u64 = 1_000_000;
/// Longer than an election, and shorter than the session timeout.
const ELECTION_US: u64 = 4 * SECOND_US;
const TIMEOUT_MS: i32 = 10_000;

/// An ensemble with its clock and the events to come.
struct Stage {
    ensemble: Ensemble,
    now_us: u64,
    steps: BTreeMap<(u64, usize), Step>,
    number: usize,
    /// What the clients have received.
    received: Vec<Effect>,
}

/// Runs a test with several seeds, which draw the delays of the messages and the elections.
fn each(test: impl Fn(Stage)) {
    for seed in 0..20 {
        let snapshot = Server::new(TICK_MS).snapshot();
        let ensemble = Ensemble::new(TICK_MS, SYNC_LIMIT, seed, &snapshot);
        let first = (ensemble.next_beat_us(), 0);
        let steps = BTreeMap::from([(first, Step::Beat)]);
        test(Stage { ensemble, now_us: 0, steps, number: 0, received: Vec::new() });
    }
}

impl Stage {
    fn leader(&self) -> usize {
        self.ensemble.leading().expect("a leader")
    }

    fn followers(&self) -> [usize; 2] {
        let followers = (0..MEMBERS).filter(|at| self.ensemble.follows(*at)).collect::<Vec<_>>();
        followers.try_into().expect("two followers")
    }

    fn happens(&mut self, event: impl FnOnce(&mut Ensemble, u64) -> Outcome) {
        let outcome = event(&mut self.ensemble, self.now_us);
        self.received.extend(outcome.effects);
        for (at_us, step) in outcome.later {
            self.number += 1;
            self.steps.insert((at_us, self.number), step);
        }
    }

    /// Handles the next event, if it is due before this time.
    fn step(&mut self, before_us: u64) -> bool {
        let Some(next) = self.steps.first_entry().filter(|next| next.key().0 < before_us) else {
            return false;
        };
        let ((at_us, _), step) = next.remove_entry();
        self.now_us = at_us;
        self.happens(|ensemble, now_us| ensemble.step(now_us, step));
        true
    }

    fn pass(&mut self, us: u64) {
        let until_us = self.now_us + us;
        while self.step(until_us) {}
        self.now_us = until_us;
    }

    fn cut(&mut self, at: usize) {
        self.happens(|ensemble, now_us| ensemble.cut(now_us, at, SECOND_US));
    }

    fn kill(&mut self, at: usize) {
        self.happens(|ensemble, now_us| ensemble.kill(now_us, at, 2 * ELECTION_US));
    }

    /// Connects a client and waits for the answer: to a new session, or to that of an earlier answer.
    fn connect(
        &mut self,
        at: usize,
        conn: Conn,
        session: Option<&ConnectResponse>,
    ) -> Option<ConnectResponse> {
        let hello = ConnectRequest {
            last_zxid_seen: 0,
            timeout_ms: TIMEOUT_MS,
            session_id: session.map_or(0, |session| session.session_id),
            password: session.map_or_else(Vec::new, |session| session.password.clone()),
            read_only: None,
        };
        self.happens(|ensemble, now_us| ensemble.handle(now_us, at, conn, Up::Connect(hello, [7; 16])));
        self.pass(SECOND_US);
        self.received.iter().find_map(|effect| match effect {
            Effect::Connected(ConnectionId(to), answer) if *to == conn => Some(answer.clone()),
            _ => None,
        })
    }

    /// Sends a request.
    fn send(&mut self, at: usize, conn: Conn, request: Request) {
        self.happens(|ensemble, now_us| ensemble.handle(now_us, at, conn, Up::Request(1, request)));
    }

    /// Sends the creation of a znode.
    fn create(&mut self, at: usize, conn: Conn, path: &str, lifetime: Lifetime) {
        let create = txn::Op::Create { path: path.to_owned(), data: Vec::new(), lifetime };
        self.send(at, conn, protocol::commit(&[create]));
    }

    /// Returns whether a connection has received a reply.
    fn is_answered(&self, conn: Conn) -> bool {
        let to = |effect: &Effect| matches!(effect, Effect::Reply(ConnectionId(to), _) if *to == conn);
        self.received.iter().any(to)
    }

    fn is_closed(&self, conn: Conn) -> bool {
        self.received.contains(&Effect::Close(ConnectionId(conn)))
    }

    /// Reads from the member of a connection whether a znode exists.
    fn exists(&mut self, at: usize, conn: Conn, path: &str) -> bool {
        self.send(at, conn, protocol::exists(path.to_owned(), false));
        match self.received.last() {
            Some(Effect::Reply(ConnectionId(to), reply)) if *to == conn => reply.result.is_ok(),
            other => panic!("a member answers a read at once, not {other:?}"),
        }
    }

    /// Returns which members have a znode.
    fn have(&mut self, path: &str) -> [bool; MEMBERS] {
        std::array::from_fn(|at| {
            let conn = 100 + at as u64;
            self.connect(at, conn, None).expect("a session");
            self.exists(at, conn, path)
        })
    }
}

#[test]
fn a_proposal_that_only_the_dead_leader_has_is_lost() {
    each(|mut stage| {
        let leader = stage.leader();
        stage.connect(leader, 1, None).expect("a session");
        stage.followers().into_iter().for_each(|at| stage.cut(at));
        stage.create(leader, 1, "/lost", Lifetime::Persistent);
        stage.pass(SECOND_US / 2);
        assert!(!stage.is_answered(1), "no majority has it");
        stage.kill(leader);
        stage.pass(ELECTION_US);
        assert_ne!(stage.leader(), leader);
        // The old leader has it in its log, and follows the new one later.
        stage.pass(2 * ELECTION_US);
        assert_eq!(stage.have("/lost"), [false; MEMBERS]);
    });
}

#[test]
fn a_proposal_that_a_follower_has_survives_its_leader() {
    each(|mut stage| {
        let (leader, [cut, has]) = (stage.leader(), stage.followers());
        stage.connect(leader, 1, None).expect("a session");
        stage.cut(cut);
        stage.create(leader, 1, "/kept", Lifetime::Persistent);
        let length = stage.ensemble.log.len();
        while stage.ensemble.members[has].logged < length {
            assert!(stage.step(u64::MAX), "the proposal arrives");
        }
        stage.kill(leader);
        assert!(!stage.is_answered(1), "the leader does not know that a majority has it");
        stage.pass(ELECTION_US);
        assert_eq!(stage.leader(), has);
        stage.pass(2 * ELECTION_US);
        assert_eq!(stage.have("/kept"), [true; MEMBERS]);
    });
}

#[test]
fn a_client_whose_member_dies_continues_its_session_on_another_member() {
    each(|mut stage| {
        let [dies, other] = stage.followers();
        let session = stage.connect(dies, 1, None).expect("a session");
        stage.create(dies, 1, "/own", Lifetime::Ephemeral);
        stage.pass(SECOND_US);
        assert!(stage.is_answered(1));
        stage.kill(dies);
        assert!(stage.is_closed(1));
        assert_eq!(stage.connect(dies, 2, Some(&session)), None, "it is down");
        assert_eq!(stage.connect(other, 3, Some(&session)).as_ref(), Some(&session));
        assert!(stage.exists(other, 3, "/own"), "the session lives");
        let servers = Servers::Three(Box::new(stage.ensemble));
        let mut rng = Rng::with_seed(0);
        let picked = (0..50).filter_map(|_| servers.pick(&mut rng)).collect::<BTreeSet<_>>();
        assert_eq!(picked, (0..MEMBERS).filter(|at| *at != dies).collect(), "the members that serve");
    });
}

#[test]
fn a_write_on_the_connection_that_a_session_has_left_is_dropped() {
    each(|mut stage| {
        let [left, other] = stage.followers();
        let session = stage.connect(left, 1, None).expect("a session");
        stage.connect(other, 2, Some(&session)).expect("the session continues");
        stage.create(left, 1, "/late", Lifetime::Persistent);
        stage.pass(SECOND_US);
        assert!(stage.is_closed(1) && !stage.is_answered(1));
        assert!(!stage.exists(other, 2, "/late"));
    });
}

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use bellwether_core::change::Noted;
use bellwether_core::job::{Assignment, JobRecord, Payload};
use bellwether_core::name::{JobId, NodeId};
use bellwether_core::time::WallMillis;
use bellwether_core::txn;
use bellwether_core::wire::{Stored, decode, encode};
use uuid::Uuid;

use super::*;

const FROM: WorkerId = WorkerId::new(Uuid::from_u128(1));
const TO: WorkerId = WorkerId::new(Uuid::from_u128(2));
const OWNER: Owner = Owner([7; 16]);

/// What happens to the next commits, each in turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Applied, and the reply is lost.
    ReplyLost,
    /// Not applied, and the reply is lost.
    RequestLost,
    /// A client flags the cancel before the commit arrives.
    Cancelled,
}

#[derive(Default)]
struct State {
    znodes: BTreeMap<String, (Vec<u8>, i32)>,
    faults: Vec<Fault>,
    commits: usize,
}

/// A server that answers immediately.
#[derive(Default)]
struct Server(Mutex<State>);

impl Server {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn put(&self, path: String, data: Vec<u8>) {
        self.state().znodes.insert(path, (data, 0));
    }

    fn value<T: Stored>(&self, path: &str) -> Option<T> {
        self.state().znodes.get(path).map(|(data, _)| decode(data).unwrap())
    }

    /// The number of jobs that the worker has.
    fn jobs(&self, worker: WorkerId) -> usize {
        let inbox = format!("{}/", path::inbox(worker));
        self.state().znodes.keys().filter(|path| path.starts_with(&inbox)).count()
    }
}

impl State {
    fn apply(&mut self, ops: &[Op]) -> Outcome<()> {
        let mut after = self.znodes.clone();
        for (at, op) in ops.iter().enumerate() {
            let rejected = |reason| Outcome::Rejected(Rejection { at, reason });
            let (Op::Check { path, .. }
            | Op::Create { path, .. }
            | Op::Set { path, .. }
            | Op::Delete { path, .. }) = op;
            let found = after.get(path).map(|(_, version)| *version);
            let wanted = match op {
                Op::Check { version, .. } | Op::Set { version, .. } => Some(*version),
                Op::Delete { version, .. } => *version,
                Op::Create { .. } => None,
            };
            match (op, found) {
                (Op::Create { .. }, Some(_)) => return rejected(Reason::NodeExists),
                (Op::Create { .. }, None) => {}
                (_, None) => return rejected(Reason::NoNode),
                (_, Some(version)) if wanted.is_some_and(|wanted| wanted != version) => {
                    return rejected(Reason::BadVersion);
                }
                (_, Some(_)) => {}
            }
            match op {
                Op::Check { .. } => {}
                Op::Create { path, data, .. } => drop(after.insert(path.clone(), (data.clone(), 0))),
                Op::Set { path, data, version } => {
                    drop(after.insert(path.clone(), (data.clone(), version + 1)));
                }
                Op::Delete { path, .. } => drop(after.remove(path)),
            }
        }
        self.znodes = after;
        Outcome::Applied(())
    }

    fn node(&self, path: &str) -> Option<Node> {
        let (data, version) = self.znodes.get(path)?.clone();
        Some(Node {
            data,
            version,
            owner: 0,
            created: 1,
            written: 1,
            modified: WallMillis(0),
            children: 0,
            children_ever: bellwether_core::port::WrappingCount::default(),
        })
    }
}

impl Requests for Server {
    fn commit(&self, ops: Vec<Op>) -> Reply<Outcome<()>> {
        let mut state = self.state();
        state.commits += 1;
        let fault = state.faults.pop();
        if fault == Some(Fault::Cancelled) {
            let assigned = path::assignment(FROM, &job(0));
            let (data, version) = state.znodes[&assigned].clone();
            let flag = txn::flag_cancel(&job(0), FROM, version, &decode(&data).unwrap());
            assert_eq!(state.apply(&[flag]), Outcome::Applied(()));
        }
        let outcome = match fault {
            Some(Fault::RequestLost) => Outcome::Unknown,
            Some(Fault::ReplyLost) => {
                assert_eq!(state.apply(&ops), Outcome::Applied(()));
                Outcome::Unknown
            }
            Some(Fault::Cancelled) | None => state.apply(&ops),
        };
        Box::pin(ready(outcome))
    }

    fn get(&self, path: String) -> Reply<ReadResult<Option<Node>>> {
        Box::pin(ready(Ok(self.state().node(&path))))
    }

    fn get_many(&self, paths: Vec<String>) -> Reply<ReadResult<Vec<Option<Node>>>> {
        let state = self.state();
        Box::pin(ready(Ok(paths.iter().map(|path| state.node(path)).collect())))
    }

    fn create_sequential(&self, _: String, _: Vec<u8>) -> Reply<Outcome<String>> {
        panic!("a takeover sends no such request")
    }

    fn sync(&self, _: String) -> Reply<ReadResult<()>> {
        panic!("a takeover sends no such request")
    }

    fn children(&self, _: String) -> Reply<ReadResult<Option<Vec<String>>>> {
        panic!("a takeover sends no such request")
    }

    fn children_many(&self, _: Vec<String>) -> Reply<ReadResult<Vec<Option<Vec<String>>>>> {
        panic!("a takeover sends no such request")
    }
}

fn job(n: usize) -> JobId {
    JobId::new(format!("j{n:03}")).unwrap()
}

fn kind() -> Kind {
    Kind::new("mail").unwrap()
}

fn held(n: usize) -> HeldAttempt {
    HeldAttempt { job: job(n), submission: Uuid::nil(), generation: 1, attempt: 1, fencing_token: 0 }
}

/// Two workers of one owner, of which the first one runs this number of jobs.
fn stage(jobs: usize) -> (Server, Takeover) {
    let server = Server::default();
    let info = WorkerInfo {
        node: NodeId::new("n").unwrap(),
        host: "h".into(),
        kinds: vec![kind()],
        leases: BTreeMap::new(),
        slots: 0,
        tags: vec![],
        codec: 1,
        started_at: WallMillis(0),
        former: vec![],
        owner: Some(OWNER),
        draining: false,
        settings: Noted::default(),
    };
    for worker in [FROM, TO] {
        server.put(path::inbox(worker), Vec::new());
        server.put(path::worker(worker), encode(&info));
    }
    for n in 0..jobs {
        let record = JobRecord::new(kind(), Payload::json(*b"1").unwrap(), Uuid::nil(), WallMillis(0));
        server.put(path::record(&job(n)), encode(&record));
        server.put(path::assignment(FROM, &job(n)), encode(&Assignment::new(1, 1, WallMillis(0))));
    }
    let held = (0..jobs).map(held).collect();
    (server, Takeover { from: FROM, owner: OWNER, held, slots: 100, limits: BTreeMap::new() })
}

fn run(server: &Server, wanted: &Takeover) -> ReadResult<Vec<Result<i32, Refusal>>> {
    let work = std::pin::pin!(take_over(server, wanted, TO));
    match work.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(taken) => taken.map(|taken| taken.into_iter().map(|taken| taken.fencing_token).collect()),
        Poll::Pending => panic!("the server answers at once"),
    }
}

#[test]
fn all_attempts_are_moved_in_several_windows() {
    let (server, wanted) = stage(2 * WINDOW + 1);
    assert_eq!(run(&server, &wanted), Ok(vec![Ok(1); 2 * WINDOW + 1]));
    assert_eq!((server.jobs(FROM), server.jobs(TO)), (0, 2 * WINDOW + 1));
}

#[test]
fn a_lost_reply_interrupts_the_takeover_and_its_repeat_recognises_the_move() {
    for fault in [Fault::ReplyLost, Fault::RequestLost] {
        let (server, wanted) = stage(3);
        server.state().faults = vec![fault];
        assert_eq!(run(&server, &wanted), Err(ReadError::Disconnected));
        assert_eq!(run(&server, &wanted).unwrap(), [Ok(1); 3]);
        assert_eq!((server.jobs(FROM), server.jobs(TO)), (0, 3));
    }
}

#[test]
fn a_rejected_move_is_decided_again() {
    let (server, wanted) = stage(1);
    server.state().faults = vec![Fault::Cancelled];
    assert_eq!(run(&server, &wanted).unwrap(), [Ok(1)]);
    let moved = server.value::<Assignment>(&path::assignment(TO, &job(0))).unwrap();
    assert!(moved.cancel, "the flag is moved, too");
}

#[test]
fn nothing_is_taken_from_a_worker_of_another_owner_or_from_an_ordinary_one() {
    for owner in [Some(Owner([8; 16])), None] {
        let (server, wanted) = stage(1);
        let info = server.value::<WorkerInfo>(&path::worker(FROM)).unwrap();
        server.put(path::worker(FROM), encode(&WorkerInfo { owner, ..info }));
        assert_eq!(run(&server, &wanted).unwrap(), [Err(Refusal::NotOwner)]);
        assert_eq!((server.jobs(FROM), server.state().commits), (1, 0));
    }
}

#[test]
fn no_more_attempts_are_moved_than_there_are_slots() {
    let (server, wanted) = stage(3);
    let wanted = Takeover { slots: 2, ..wanted };
    assert_eq!(
        run(&server, &wanted).unwrap().iter().filter(|fencing_token| fencing_token.is_ok()).count(),
        2
    );
    let (server, wanted) = stage(3);
    let wanted = Takeover { limits: BTreeMap::from([(kind(), 1)]), ..wanted };
    assert_eq!(
        run(&server, &wanted).unwrap().iter().filter(|fencing_token| fencing_token.is_ok()).count(),
        1
    );
    assert_eq!((server.jobs(FROM), server.jobs(TO)), (2, 1), "the others are handed back");
}

#[test]
fn an_attempt_that_was_closed_is_refused_and_the_others_are_moved() {
    let (server, wanted) = stage(2);
    server.state().znodes.remove(&path::assignment(FROM, &job(0)));
    assert_eq!(run(&server, &wanted).unwrap(), [Err(Refusal::NotHeld), Ok(1)]);
}

#[test]
fn nothing_is_taken_over_after_the_session_of_the_former_worker_expired() {
    let (server, wanted) = stage(1);
    server.state().znodes.remove(&path::worker(FROM));
    assert_eq!(run(&server, &wanted).unwrap(), [Err(Refusal::NotHeld)]);
    assert_eq!((server.jobs(FROM), server.state().commits), (1, 0));
}

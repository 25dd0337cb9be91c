use std::future::ready;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use super::*;
use crate::job::{Delay, QueueEntry, Turn};
use crate::name::{JobId, Kind, Lane};
use crate::port::{Node, ReadResult, Reply, WrappingCount};
use crate::ready::Waiting;
use crate::time::WallMillis;
use crate::zookeeper::ZooKeeper;

/// A server and a session's driver.
#[derive(Default)]
struct Driver {
    server: Server,
    seen: SeenParents,
    /// The number of operations of each multi.
    sent: Vec<usize>,
    reads: usize,
}

struct Server(Mutex<ZooKeeper>);

impl Default for Server {
    fn default() -> Self {
        let mut zookeeper = ZooKeeper::new();
        for parent in [path::JOBS, path::DELAYED, path::LANES, path::EPOCH, &lane_bucket()] {
            zookeeper.put(parent, Vec::new(), 0);
        }
        Self(Mutex::new(zookeeper))
    }
}

impl Server {
    fn lock(&self) -> MutexGuard<'_, ZooKeeper> {
        self.0.lock().unwrap()
    }

    fn has(&self, path: &str) -> bool {
        self.lock().get(path).is_some()
    }
}

impl Requests for Server {
    fn get_many(&self, paths: Vec<String>) -> Reply<ReadResult<Vec<Option<Node>>>> {
        assert!(paths.len() <= MAX_READ_BATCH);
        let node = Node {
            data: Vec::new(),
            version: 0,
            owner: 0,
            created: 1,
            written: 1,
            modified: WallMillis(0),
            children: 0,
            children_ever: WrappingCount::default(),
        };
        Box::pin(ready(Ok(paths.iter().map(|path| self.has(path).then(|| node.clone())).collect())))
    }

    fn commit(&self, _: Vec<Op>) -> Reply<Outcome<()>> {
        panic!("not a read")
    }

    fn create_sequential(&self, _: String, _: Vec<u8>) -> Reply<Outcome<String>> {
        panic!("not a read")
    }

    fn sync(&self, _: String) -> Reply<ReadResult<()>> {
        panic!("not a read of containers")
    }

    fn get(&self, _: String) -> Reply<ReadResult<Option<Node>>> {
        panic!("not a read of containers")
    }

    fn children(&self, _: String) -> Reply<ReadResult<Option<Vec<String>>>> {
        panic!("not a read of containers")
    }

    fn children_many(&self, _: Vec<String>) -> Reply<ReadResult<Vec<Option<Vec<String>>>>> {
        panic!("not a read of containers")
    }
}

impl Driver {
    fn commit(&mut self, ops: &[Op]) -> Outcome<()> {
        self.commit_by(ops, |server, multi| {
            let session = server.operator;
            server.multi(session, multi)
        })
    }

    fn commit_by(
        &mut self,
        ops: &[Op],
        mut answer: impl FnMut(&mut ZooKeeper, &[Op]) -> Outcome<()>,
    ) -> Outcome<()> {
        let mut parents = Parents::of(ops.iter(), &self.seen).expect("it needs containers");
        loop {
            let multi = [parents.creates(), ops.to_vec()].concat();
            self.sent.push(multi.len());
            assert!(self.sent.len() <= 2 * MAX_SENDS as usize, "it is sent again and again");
            let outcome = answer(&mut self.server.lock(), &multi);
            match parents.answered(&mut self.seen, outcome) {
                Delivery::Done(outcome) => return outcome,
                Delivery::Look => {
                    self.reads += 1;
                    let look = pin!(parents.look(&self.server));
                    let read = look.poll(&mut Context::from_waker(Waker::noop()));
                    assert_eq!(read, Poll::Ready(Ok(())));
                }
            }
        }
    }

    /// The sizes of the multis and the number of reads since the last call.
    fn cost(&mut self) -> (Vec<usize>, usize) {
        (std::mem::take(&mut self.sent), std::mem::take(&mut self.reads))
    }
}

fn lane() -> Lane {
    Lane::new("order-1").unwrap()
}

fn lane_bucket() -> String {
    path::lane(&lane()).rsplit_once('/').unwrap().0.to_owned()
}

fn job(n: usize) -> JobId {
    JobId::new(format!("job-{n}")).unwrap()
}

fn entry(n: usize, minute: u64) -> Op {
    let delay = Delay { minute, generation: 1, attempt: 1 };
    Op::create(path::delayed_entry(delay, &job(n)), Vec::new())
}

fn turn(n: usize) -> Op {
    Op::create(path::turn(&Turn { lane: lane(), generation: 1 }, &job(n)), Vec::new())
}

fn rejected(at: usize, reason: Reason) -> Outcome<()> {
    Outcome::Rejected(Rejection { at, reason })
}

const DONE: Outcome<()> = Outcome::Applied(());

#[test]
fn only_creates_of_children_need_containers() {
    let seen = SeenParents::default();
    let Op::Create { path, .. } = entry(1, 7) else { unreachable!() };
    let others = [super::super::fence(3), Op::delete(path), Op::create(path::record(&job(1)), Vec::new())];
    assert!(Parents::of(others.iter(), &seen).is_none());
    let ops = [entry(1, 7), entry(2, 7), turn(1)];
    let parents = Parents::of(ops.iter(), &seen).unwrap();
    let creates = parents.creates().iter().map(|op| op.path().to_owned()).collect::<Vec<_>>();
    assert_eq!(creates, [path::delayed_minute(7), path::lane(&lane())]);
}

#[test]
fn a_missing_container_is_created_in_the_same_multi_and_then_known() {
    let mut driver = Driver::default();
    assert_eq!(driver.commit(&[entry(1, 7), turn(1)]), DONE);
    assert_eq!(driver.commit(&[entry(2, 7), turn(2)]), DONE);
    assert_eq!(driver.cost(), (vec![4, 2], 0));
}

#[test]
fn a_container_of_another_process_costs_one_read() {
    let mut driver = Driver::default();
    driver.server.lock().put(&path::delayed_minute(7), Vec::new(), 0);
    assert_eq!(driver.commit(&[turn(1), entry(1, 7)]), DONE, "the lane is still missing");
    assert_eq!(driver.cost(), (vec![4, 3], 1));
    assert_eq!(driver.commit(&[turn(2), entry(2, 7)]), DONE);
    assert_eq!(driver.cost(), (vec![2], 0));
}

/// ZooKeeper removes a container when it is empty.
#[test]
fn a_known_container_that_was_removed_is_created_again() {
    let mut driver = Driver::default();
    assert_eq!(driver.commit(&[entry(1, 7)]), DONE);
    let Op::Create { path, .. } = entry(1, 7) else { unreachable!() };
    driver.server.lock().remove(&path);
    driver.server.lock().remove(&path::delayed_minute(7));
    driver.cost();
    assert_eq!(driver.commit(&[entry(2, 7)]), DONE);
    assert_eq!(driver.cost(), (vec![1, 2], 1));
}

/// The class of the slot is considered present, and ZooKeeper has removed it.
#[test]
fn a_known_class_that_was_removed_is_created_again_with_a_new_slot() {
    let mut driver = Driver::default();
    let waits = |n, at: u64| {
        let entry =
            QueueEntry { submitted_at: WallMillis(at), ..QueueEntry::new(Kind::new("sum").unwrap(), 1, 1) };
        Waiting::new(&job(n), entry).at
    };
    let (first, second) = (waits(1, 0), waits(2, 60_000));
    let class = path::ready_class(&first.class);
    driver.server.lock().put(&path::ready_shard(first.class.shard()), Vec::new(), 0);
    let create = |at| Op::create(path::ready_entry(at), Vec::new());
    assert_eq!(driver.commit(&[create(&first)]), DONE);
    assert_eq!(driver.cost(), (vec![3], 0), "class, slot and entry");
    for path in [path::ready_entry(&first), path::ready_slot(&first.class, first.slot), class] {
        driver.server.lock().remove(&path);
    }
    assert_eq!(driver.commit(&[create(&second)]), DONE);
    assert_eq!(driver.cost(), (vec![2, 3], 1));
}

/// The caller's rule decides what a lost reply means. A second send here could repeat an applied transaction.
#[test]
fn after_a_lost_reply_nothing_is_sent_again_and_nothing_is_assumed() {
    for applied in [false, true] {
        let mut driver = Driver::default();
        let outcome = driver.commit_by(&[entry(1, 7)], |server, multi| {
            if applied {
                assert_eq!(server.multi(server.operator, multi), DONE);
            }
            Outcome::Unknown
        });
        assert_eq!((outcome, driver.cost()), (Outcome::Unknown, (vec![2], 0)));
        assert!(!driver.seen.has(&path::delayed_minute(7)));
    }
}

#[test]
fn a_rejection_names_an_operation_of_the_transaction() {
    let mut driver = Driver::default();
    let stale = super::super::fence(9);
    assert_eq!(driver.commit(&[stale.clone(), entry(1, 7)]), rejected(0, Reason::BadVersion));
    assert_eq!(driver.commit(&[entry(1, 7)]), DONE);
    assert_eq!(driver.commit(&[turn(1), entry(1, 7)]), rejected(1, Reason::NodeExists));
    assert!(!driver.server.has(&path::lane(&lane())), "a rejected multi leaves no container");
    driver.server.lock().remove(&lane_bucket());
    assert_eq!(
        driver.commit(&[entry(2, 7), turn(1)]),
        rejected(1, Reason::NoNode),
        "the bucket of the lane is missing"
    );
    let whole = rejected(0, Reason::NotSent);
    assert_eq!(driver.commit_by(&[turn(1)], |_, _| whole.clone()), whole);
    let denied = driver.commit_by(&[entry(2, 7), turn(1)], |_, _| rejected(0, Reason::NoAuth));
    assert_eq!(denied, rejected(1, Reason::NoAuth), "the lane cannot be created");
}

#[test]
fn a_container_that_keeps_changing_counts_as_missing() {
    let mut driver = Driver::default();
    let outcome = driver.commit_by(&[turn(1), entry(1, 7)], |server, multi| {
        let minute = path::delayed_minute(7);
        if server.get(&minute).is_none() {
            server.put(&minute, Vec::new(), 0);
        } else {
            server.remove(&minute);
        }
        server.multi(server.operator, multi)
    });
    assert_eq!(outcome, rejected(1, Reason::NoNode));
    assert_eq!(driver.cost().0.len(), MAX_SENDS as usize);
}

#[test]
fn many_containers_are_read_in_several_batches() {
    let mut driver = Driver::default();
    let minutes = 0..2 * MAX_READ_BATCH as u64 + 1;
    for minute in minutes.clone().filter(|minute| minute % 2 == 0) {
        driver.server.lock().put(&path::delayed_minute(minute), Vec::new(), 0);
    }
    let ops = minutes.map(|minute| entry(1, minute)).collect::<Vec<_>>();
    assert_eq!(driver.commit(&ops), DONE);
    assert_eq!(driver.cost(), (vec![402, 301], 1));
}

#[test]
fn only_the_containers_seen_last_are_remembered() {
    let mut seen = SeenParents::default();
    let minutes = (0..=2 * SEEN as u64).map(path::delayed_minute).collect::<Vec<_>>();
    minutes.iter().for_each(|minute| seen.add(minute));
    assert!(!seen.has(&minutes[0]));
    assert!(minutes[SEEN..].iter().all(|minute| seen.has(minute)));
}

#[test]
fn a_rejection_of_the_whole_multi_names_its_first_operation() {
    let mut driver = Driver::default();
    let whole = rejected(0, Reason::NotSent);
    assert_eq!(driver.commit_by(&[super::super::fence(0), turn(1)], |_, _| whole.clone()), whole);
}

#[test]
fn a_container_without_a_place_is_not_looked_for() {
    let mut driver = Driver::default();
    assert_eq!(driver.commit(&[entry(1, 7)]), DONE);
    driver.server.lock().remove(&lane_bucket());
    driver.cost();
    assert_eq!(driver.commit(&[entry(2, 7), turn(1)]), rejected(1, Reason::NoNode));
    assert_eq!(driver.cost(), (vec![3], 0), "only the bucket of the lane is missing, and it is no container");
}

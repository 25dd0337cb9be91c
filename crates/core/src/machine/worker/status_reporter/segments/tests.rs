use std::collections::VecDeque;

use super::*;
use crate::job::{Ending, Payload};
use crate::machine::worker::Start;
use crate::path;
use crate::segment::ChunkName;
use crate::segment::fixture::{id, segment};
use crate::txn::Op;

const WALL: WallMillis = WallMillis(9);

fn worker() -> WorkerId {
    WorkerId::new(uuid::Uuid::from_u128(7))
}

/// Another segment with the same members, which is later in the order.
fn other(segment: u8) -> SegmentId {
    let unique = uuid::Uuid::from_u128(16 + u128::from(segment));
    SegmentId::new(unique, 4, 1).unwrap()
}

fn member(number: u8) -> MemberId {
    MemberId { segment: id(), number }
}

fn job(number: u8) -> JobId {
    member(number).job()
}

fn packed() -> Packed {
    let assignment = Assignment::new(1, 5, WALL);
    Packed { id: id(), segment: segment(), assignment, version: 0, asked: Millis(0) }
}

fn result() -> Ending {
    Ending::Succeeded(Payload::json(*b"1").unwrap())
}

/// A worker with one assigned segment, whose members all run.
struct Stage {
    machine: Segments,
    starts: Vec<Start>,
    now: Millis,
    /// The transactions in flight, oldest first.
    sent: VecDeque<Batch<SegmentId>>,
    /// The requested times.
    wakes: Vec<Millis>,
}

impl Stage {
    fn new() -> Self {
        let mut stage = Self::waiting();
        stage.on(Event::Began((0..4).map(member).collect()));
        stage
    }

    /// Several segments, numbered from 0, whose members all run.
    fn several(segments: u8) -> Self {
        let mut stage = Self::new();
        for segment in 1..segments {
            let starts = Packed { id: other(segment), ..packed() }.starts().collect::<Vec<_>>();
            stage.on(Event::Assigned(Arc::clone(starts[0].packed.as_ref().unwrap())));
            stage.starts.extend(starts);
        }
        stage
    }

    /// All members of these segments succeed.
    fn all_end(&mut self, segments: std::ops::Range<usize>) -> Vec<Effect> {
        let starts = &self.starts[4 * segments.start..4 * segments.end];
        let finished = starts.iter().map(|start| Finished { start: start.clone(), ending: result() });
        self.on(Event::Finished(finished.collect(), WALL))
    }

    fn waiting() -> Self {
        let starts = packed().starts().collect::<Vec<_>>();
        let machine = Segments::new(worker());
        let mut stage = Self { machine, starts, now: Millis(0), sent: VecDeque::new(), wakes: vec![] };
        let packed = Arc::clone(stage.starts[0].packed.as_ref().unwrap());
        stage.on(Event::Assigned(packed));
        stage
    }

    fn on(&mut self, event: Event) -> Vec<Effect> {
        let mut out = Vec::new();
        self.machine.handle(self.now, event, &mut out);
        let wake = |effect: &Effect| match effect {
            Effect::WakeAt(at) => Some(*at),
            _ => None,
        };
        self.wakes.extend(out.iter().filter_map(wake));
        out.retain(|effect| !matches!(effect, Effect::WakeAt(_)));
        let batch = |effect: &Effect| match effect {
            Effect::Commit(batch) => Some(batch.clone()),
            _ => None,
        };
        self.sent.extend(out.iter().filter_map(batch));
        out
    }

    fn at(&mut self, now: u64) -> Vec<Effect> {
        self.now = Millis(now);
        self.on(Event::Wake)
    }

    fn ends(&mut self, number: u8, ending: Ending) -> Vec<Effect> {
        let start = self.starts[usize::from(number)].clone();
        self.on(Event::Finished(vec![Finished { start, ending }], WALL))
    }

    /// The times that were requested since the last call.
    fn wakes(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.wakes).into_iter().map(|at| at.0).collect()
    }

    /// The outcome of the oldest transaction in flight.
    fn committed(&mut self, outcome: Outcome<()>) -> Vec<Effect> {
        let batch = self.sent.pop_front().expect("a transaction is in flight");
        self.on(Event::Committed(batch, outcome))
    }

    fn applied(&mut self) -> Vec<Effect> {
        self.committed(Outcome::Applied(()))
    }

    fn found(&mut self, version: Option<i32>, chunks: &[&str]) -> Vec<Effect> {
        let assignment =
            version.map_or(Lookup::Absent, |version| Lookup::Found(Assignment::new(1, 5, WALL), version));
        self.on(Event::Read(vec![(id(), assignment, Chunks::of_names(chunks.iter().copied()))]))
    }
}

/// The chunk that a write creates, and the version at which it leaves the assignment; `None` if it deletes it.
fn written(effects: &[Effect]) -> (String, bool) {
    let [Effect::Commit(batch)] = effects else { panic!("expected one write: {effects:?}") };
    let ops = batch.ops().collect::<Vec<_>>();
    assert_eq!(ops[0].path(), path::assignment(worker(), &id().job()));
    let chunk = ops[1].path().rsplit('/').next().unwrap().to_owned();
    assert!(chunk.parse::<ChunkName>().is_ok(), "{chunk}");
    (chunk, matches!(ops[0], Op::Delete { .. }))
}

fn names(effects: &[Effect]) -> Vec<String> {
    let name = |effect: &Effect| match effect {
        Effect::Commit(..) => "commit".to_owned(),
        Effect::Read(_) => "read".to_owned(),
        Effect::HandBack(_) => "hand back".to_owned(),
        Effect::Succeeded(finished, at) => {
            assert!(*at == WALL && matches!(finished.ending, Ending::Succeeded(_)));
            format!("succeeded {}", finished.start.job.as_str().rsplit('@').next().unwrap())
        }
        Effect::Returned(job) => format!("returned {}", job.as_str().rsplit('@').next().unwrap()),
        Effect::Extracted(job) => format!("extracted {}", job.as_str().rsplit('@').next().unwrap()),
        Effect::Close(finished) => {
            assert_eq!(finished.start.packed, None);
            format!("close {}", finished.start.job.as_str().rsplit('@').next().unwrap())
        }
        Effect::Over(_) => "over".to_owned(),
        Effect::Refused(..) => "refused".to_owned(),
        Effect::WakeAt(_) => "wake".to_owned(),
    };
    effects.iter().map(name).collect()
}

#[test]
fn the_results_of_all_members_share_one_write() {
    let mut stage = Stage::new();
    for number in 0..3 {
        assert_eq!(stage.ends(number, result()), [], "others are still open");
    }
    assert_eq!(written(&stage.ends(3, result())), ("sf".to_owned(), true));
    assert_eq!(names(&stage.applied()), ["succeeded 0", "succeeded 1", "succeeded 2", "succeeded 3", "over"]);
    assert!(!stage.machine.holds(&job(0)));
}

/// The segments of each transaction.
fn shared(effects: &[Effect]) -> Vec<Vec<SegmentId>> {
    let batch = |effect: &Effect| match effect {
        Effect::Commit(batch) => Some(batch.keys().copied().collect()),
        _ => None,
    };
    effects.iter().filter_map(batch).collect()
}

#[test]
fn segments_that_end_at_the_same_time_share_a_transaction() {
    let mut stage = Stage::several(60);
    assert_eq!(stage.all_end(0..24), [], "96 members wait for more");
    let first = std::iter::once(id()).chain((1..25).map(other)).collect::<Vec<_>>();
    assert_eq!(shared(&stage.all_end(24..25)), [first], "100 members leave");
    assert_eq!(stage.all_end(25..26), []);
    assert_eq!(stage.at(10), [], "a transaction is in flight");
    assert_eq!(shared(&stage.applied()), [[other(25)]]);
    let last = (26..60).map(other).collect::<Vec<_>>();
    assert_eq!(shared(&stage.all_end(26..60)), [last], "so many do not wait for the one in flight");
    stage.applied();
    assert_eq!(names(&stage.applied()).iter().filter(|name| *name == "over").count(), 34);
}

#[test]
fn a_small_segment_does_not_wait_long_for_others() {
    let mut stage = Stage::several(2);
    assert_eq!(stage.all_end(0..1), []);
    assert_eq!(stage.at(9), []);
    assert_eq!(shared(&stage.at(10)), [[id()]]);
}

#[test]
fn a_rejection_concerns_one_segment_and_the_others_are_written_again() {
    let mut stage = Stage::several(3);
    stage.on(Event::Hold);
    stage.all_end(0..3);
    let sent = shared(&stage.on(Event::Resume));
    assert_eq!(sent, [vec![id(), other(1), other(2)]]);
    // Two operations for each.
    let rejected = Outcome::Rejected(Rejection { at: 3, reason: Reason::NodeExists });
    stage.now = Millis(10);
    let then = stage.committed(rejected);
    assert_eq!(
        (then.first(), shared(&then)),
        (Some(&Effect::Read(vec![other(1)])), vec![vec![id(), other(2)]])
    );
    let found = Event::Read(vec![(other(1), Lookup::Absent, Chunks::of_names(["sf"]))]);
    assert_eq!(
        names(&stage.on(found)).last().map(String::as_str),
        Some("over"),
        "its first copy was applied"
    );
}

#[test]
fn each_segment_of_a_transaction_without_reply_is_read() {
    let mut stage = Stage::several(2);
    stage.on(Event::Hold);
    stage.all_end(0..2);
    stage.on(Event::Resume);
    let read = stage.committed(Outcome::Unknown);
    assert_eq!(read, [Effect::Read(vec![id(), other(1)])], "in one request");
}

#[test]
fn a_read_of_many_segments_without_reply_has_limited_length() {
    let mut stage = Stage::several(60);
    stage.on(Event::Hold);
    stage.all_end(0..60);
    stage.on(Event::Resume);
    let lengths = |effects: Vec<Effect>| {
        let reads = effects
            .iter()
            .filter_map(|effect| if let Effect::Read(ids) = effect { Some(ids.len()) } else { None });
        reads.collect::<Vec<_>>()
    };
    assert_eq!(lengths(stage.committed(Outcome::Unknown)), [50, 10], "an assignment and the chunks of each");
}

#[test]
fn a_transaction_that_is_refused_as_a_whole_is_tried_again_later_and_reported_once() {
    let mut stage = Stage::several(2);
    stage.on(Event::Hold);
    stage.all_end(0..2);
    stage.on(Event::Resume);
    let refused = Rejection { at: 0, reason: Reason::Refused("throttled".into()) };
    let reason = refused.reason.clone();
    let told = stage.committed(Outcome::Rejected(refused));
    assert_eq!(told, [Effect::Refused(vec![id(), other(1)], reason)]);
    assert_eq!(shared(&stage.at(249)), [] as [Vec<_>; 0]);
    assert!(stage.at(1_000).contains(&Effect::Read(vec![id(), other(1)])));
}

#[test]
fn large_results_of_many_segments_are_written_in_a_few_transactions_at_a_time() {
    let mut stage = Stage::several(60);
    let large = || Ending::Succeeded(Payload::json(vec![b'1'; RESULT_BYTES]).unwrap());
    stage.on(Event::Hold);
    let ends = stage.starts.iter().step_by(4).map(|start| Finished { start: start.clone(), ending: large() });
    let ends = ends.collect();
    stage.on(Event::Finished(ends, WALL));
    let sent = shared(&stage.on(Event::Resume));
    assert_eq!(sent.len(), WINDOW + 1);
    assert!(sent.iter().all(|segments| segments.len() <= 3), "{sent:?}");
    assert_eq!(shared(&stage.applied()), [] as [Vec<_>; 0], "the window is full");
    assert!(!shared(&stage.applied()).is_empty());
}

#[test]
fn a_result_does_not_wait_long_for_the_others() {
    let mut stage = Stage::new();
    stage.ends(1, result());
    assert_eq!(stage.at(9), []);
    assert_eq!(written(&stage.at(10)), ("s2".to_owned(), false));
    stage.ends(0, result());
    assert_eq!(names(&stage.applied()), ["succeeded 1"], "the next one waits for its time");
    assert_eq!(written(&stage.at(20)), ("s1".to_owned(), false));
}

#[test]
fn a_member_that_fails_is_extracted_and_then_closed() {
    let mut stage = Stage::new();
    let sent = stage.ends(2, Ending::Failed("no".to_owned()));
    assert_eq!(written(&sent), ("x4".to_owned(), false));
    assert_eq!(names(&stage.applied()), ["close 2"]);
    assert!(!stage.machine.holds(&job(2)) && stage.machine.holds(&job(1)));
}

#[test]
fn members_that_have_not_ended_soon_are_extracted_and_those_that_have_not_begun_wait_again() {
    let mut stage = Stage::waiting();
    stage.on(Event::Began(vec![member(0), member(1)]));
    assert_eq!(stage.at(249), []);
    let sent = stage.at(250);
    assert_eq!(names(&sent), ["hand back", "commit"]);
    assert_eq!(written(&sent[1..]), ("x3".to_owned(), false));
    // The executor had started one more, and hands back the other.
    stage.on(Event::Began(vec![member(2)]));
    stage.ends(3, Ending::Released);
    let applied = stage.applied();
    assert_eq!(names(&applied), ["extracted 0", "extracted 1", "commit"]);
    assert_eq!(written(&applied[2..]), ("xc".to_owned(), true));
    assert_eq!(names(&stage.applied()), ["extracted 2", "returned 3", "over"]);
    assert_eq!(names(&stage.ends(0, result())), ["close 0"], "its attempt is closed as that of a job");
}

#[test]
fn the_request_of_a_handler_extracts_its_member() {
    let mut stage = Stage::new();
    assert_eq!(written(&stage.on(Event::Extract(member(3)))), ("x8".to_owned(), false));
    assert_eq!(stage.ends(3, result()), [], "its end waits for the extraction");
    assert_eq!(names(&stage.applied()), ["close 3"]);
}

#[test]
fn a_lost_reply_is_resolved_by_the_chunks() {
    for (version, chunks, expected) in [
        (Some(1), &["s2"][..], vec!["succeeded 1"]),
        // It was not applied. A late copy has the same name and version.
        (Some(0), &[], vec!["commit"]),
        // The leader has extracted all.
        (None, &["xf"], vec!["extracted 0", "close 1", "extracted 2", "extracted 3", "over"]),
    ] {
        let mut stage = Stage::new();
        stage.ends(1, result());
        stage.at(10);
        assert_eq!(names(&stage.committed(Outcome::Unknown)), ["read"]);
        assert_eq!(names(&stage.found(version, chunks)), expected, "{chunks:?}");
    }
}

/// The first write may be applied after the read that found nothing.
#[test]
fn a_late_first_write_rejects_the_second_one() {
    let mut stage = Stage::new();
    stage.ends(1, result());
    stage.at(10);
    stage.committed(Outcome::Unknown);
    stage.found(Some(0), &[]);
    let rejected = Outcome::Rejected(Rejection { at: 0, reason: Reason::BadVersion });
    assert_eq!(names(&stage.committed(rejected)), ["read"]);
    assert_eq!(names(&stage.found(Some(1), &["s2"])), ["succeeded 1"]);
}

#[test]
fn a_rejection_that_nothing_explains_is_repeated_after_a_pause() {
    let mut stage = Stage::new();
    stage.ends(1, result());
    stage.at(10);
    let rejected = Outcome::Rejected(Rejection { at: 1, reason: Reason::NoNode });
    assert_eq!(names(&stage.committed(rejected)), ["read"]);
    assert_eq!(stage.found(Some(0), &[]), []);
    assert_eq!(stage.at(109), []);
    assert_eq!(written(&stage.at(110)), ("s2".to_owned(), false));
}

#[test]
fn a_refused_write_is_followed_by_a_read_because_the_leader_may_have_extracted_the_members() {
    let mut stage = Stage::new();
    stage.ends(1, result());
    stage.at(10);
    let refused = Outcome::Rejected(Rejection { at: 0, reason: Reason::NoAuth });
    assert_eq!(names(&stage.committed(refused)), ["refused"]);
    assert_eq!(names(&stage.at(1_010)), ["hand back", "read"]);
    let expected = ["extracted 0", "close 1", "extracted 2", "extracted 3", "over"];
    assert_eq!(names(&stage.found(None, &["xf"])), expected);
}

#[test]
fn large_results_are_written_in_several_chunks() {
    let mut stage = Stage::new();
    let large = || Ending::Succeeded(Payload::json(vec![b'1'; 64 * 1024 - 1]).unwrap());
    stage.on(Event::Hold);
    (0..4).for_each(|number| drop(stage.ends(number, large())));
    let first = stage.on(Event::Resume);
    assert_eq!(written(&first), ("s1".to_owned(), false));
    let mut chunks = Vec::new();
    for _ in 0..3 {
        let applied = stage.applied();
        chunks.push(written(&applied[1..]));
    }
    assert_eq!(chunks.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["s2", "s4", "s8"]);
    assert_eq!(names(&stage.applied()), ["succeeded 3", "over"]);
}

#[test]
fn nothing_is_sent_while_the_connection_is_lost() {
    let mut stage = Stage::new();
    stage.on(Event::Hold);
    assert_eq!(stage.ends(0, Ending::Failed("no".to_owned())), []);
    assert_eq!(written(&stage.on(Event::Resume)), ("x1".to_owned(), false));
    let not_sent = Outcome::Rejected(Rejection { at: 0, reason: Reason::NotSent });
    assert_eq!(stage.committed(not_sent), []);
    assert_eq!(written(&stage.at(100)), ("x1".to_owned(), false), "it is tried again");
}

#[test]
fn the_time_of_the_extraction_is_requested_once() {
    let mut stage = Stage::new();
    assert_eq!(stage.wakes(), [250]);
    stage.at(250);
    assert!(stage.wakes().is_empty());
}

#[test]
fn the_oldest_result_decides_when_the_machine_wakes() {
    let mut stage = Stage::new();
    stage.wakes();
    stage.ends(1, result());
    assert_eq!(stage.wakes(), [10], "before the extraction");
    stage.now = Millis(5);
    stage.ends(2, result());
    assert!(stage.wakes().is_empty(), "the time is requested already");
}

#[test]
fn a_small_segment_that_waits_for_others_wakes_the_machine() {
    let mut stage = Stage::several(2);
    stage.wakes();
    stage.all_end(0..1);
    assert_eq!(stage.wakes(), [10]);
}

#[test]
fn while_the_connection_is_lost_no_time_is_requested_that_has_come() {
    let mut stage = Stage::new();
    stage.ends(1, result());
    stage.on(Event::Hold);
    stage.wakes();
    assert_eq!(stage.at(10), []);
    assert_eq!(stage.wakes(), [250]);
}

#[test]
fn a_write_that_was_not_sent_is_due_after_a_pause_or_when_the_session_is_back() {
    let not_sent = || Outcome::Rejected(Rejection { at: 0, reason: Reason::NotSent });
    let mut stage = Stage::new();
    stage.ends(0, Ending::Failed("no".to_owned()));
    stage.wakes();
    assert_eq!(stage.committed(not_sent()), []);
    assert_eq!(stage.wakes(), [100]);
    stage.now = Millis(50);
    assert_eq!(written(&stage.on(Event::Resume)), ("x1".to_owned(), false));
}

#[test]
fn an_unanswered_read_is_sent_again_when_the_session_is_back() {
    let mut stage = Stage::new();
    stage.ends(0, Ending::Failed("no".to_owned()));
    assert_eq!(names(&stage.committed(Outcome::Unknown)), ["read"]);
    stage.wakes();
    assert_eq!(stage.on(Event::ReadFailed(vec![id()])), []);
    assert_eq!(stage.wakes(), [100]);
    stage.now = Millis(50);
    assert_eq!(stage.on(Event::Resume), [Effect::Read(vec![id()])]);
}

#[test]
fn a_member_that_began_is_closed_when_it_is_handed_back() {
    let mut stage = Stage::new();
    assert_eq!(written(&stage.ends(0, Ending::Released)), ("x1".to_owned(), false));
    assert_eq!(names(&stage.applied()), ["close 0"]);
}

#[test]
fn a_member_that_was_extracted_while_it_ran_is_closed_as_a_job() {
    let mut stage = Stage::new();
    stage.on(Event::Extract(member(3)));
    assert_eq!(names(&stage.applied()), ["extracted 3"]);
    assert_eq!(names(&stage.ends(3, result())), ["close 3"]);
}

#[test]
fn after_a_read_only_the_members_that_it_found_are_held_at_the_version_that_it_found() {
    let mut stage = Stage::new();
    stage.ends(1, result());
    stage.at(10);
    stage.committed(Outcome::Unknown);
    stage.found(Some(1), &["s2"]);
    assert!(!stage.machine.holds(&job(1)) && stage.machine.holds(&job(0)));
    let sent = stage.ends(0, Ending::Failed("no".to_owned()));
    let [Effect::Commit(batch)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(batch.ops().next().and_then(Op::version), Some(1));
}

#[test]
fn a_chunk_of_several_results_has_limited_bytes() {
    let mut stage = Stage::new();
    stage.on(Event::Hold);
    stage.ends(0, result());
    stage.ends(1, Ending::Succeeded(Payload::json(vec![b'1'; 64 * 1024]).unwrap()));
    assert_eq!(written(&stage.on(Event::Resume)), ("s1".to_owned(), false));
}

#[test]
fn the_bytes_of_written_results_do_not_count_any_more() {
    let mut stage = Stage::new();
    let large = || Ending::Succeeded(Payload::json(vec![b'1'; 64 * 1024 - 1]).unwrap());
    stage.ends(0, large());
    assert_eq!(written(&stage.at(10)), ("s1".to_owned(), false));
    assert_eq!(names(&stage.applied()), ["succeeded 0"]);
    assert_eq!(stage.ends(1, large()), [], "the result waits for others");
}

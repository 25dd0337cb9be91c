use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::job::Verdict;
use crate::name::{GroupId, JobId};
use crate::outcome::{Reason, Rejection};
use crate::path;
use crate::retention::KEPT_AT_LEAST;
use crate::txn::Op;

const WALL: WallMillis = WallMillis(1_700_000_000_000);
const MINUTE: Duration = Duration::from_secs(60);
/// What a request takes here.
const TOOK: Duration = Duration::from_millis(3);

/// A namespace whose requests are answered one by one.
struct Stage {
    janitor: Janitor,
    now: Millis,
    retention: Option<Retention>,
    records: BTreeMap<JobId, Found>,
    asked: Vec<Effect>,
    removed: usize,
    fenced: bool,
    /// When the epoch was claimed; just now, unless said otherwise.
    claimed: Option<WallMillis>,
}

fn retention() -> Retention {
    Retention { succeeded: MINUTE, cancelled: MINUTE, dead: 2 * MINUTE, ..Retention::default() }
}

fn job(n: u32) -> JobId {
    JobId::new(format!("job-{n}")).unwrap()
}

impl Stage {
    fn new() -> Self {
        let janitor = Janitor::new(7);
        let retention = Some(retention());
        let (records, asked) = (BTreeMap::new(), Vec::new());
        let now = Millis(0);
        Self { janitor, now, retention, records, asked, removed: 0, fenced: false, claimed: None }
    }

    fn wall(&self) -> WallMillis {
        WallMillis(WALL.0 + self.now.0)
    }

    fn end(&mut self, n: u32, verdict: Verdict) {
        let at = self.wall();
        self.records.insert(
            job(n),
            Found::Over {
                version: 2,
                verdict,
                at,
                modified: at,
                grouped: false,
                counted: false,
                sub_jobs: None,
            },
        );
    }

    fn feed(&mut self, event: Event) -> Vec<Effect> {
        let mut out = Vec::new();
        self.janitor.handle(self.now, self.wall(), event, &mut out);
        out
    }

    /// One round, with an answer to every request; gives how long it rested and how long it asked.
    fn round(&mut self) -> (Duration, Duration) {
        self.round_but(|_| None)
    }

    /// A round in which some requests are answered otherwise.
    fn round_but(&mut self, mut otherwise: impl FnMut(&Effect) -> Option<Event>) -> (Duration, Duration) {
        let (mut rested, mut busy) = (Duration::ZERO, Duration::ZERO);
        let mut event = Event::Go;
        loop {
            let effects = self.feed(event);
            let mut next = None;
            for effect in effects {
                match effect {
                    Effect::Rest(wait) => {
                        rested += wait;
                        self.now = self.now + wait;
                        assert_eq!(next.replace(Event::Go), None);
                    }
                    Effect::Idle => return (rested, busy),
                    Effect::Removed(count) => self.removed += count,
                    Effect::FencedOut => self.fenced = true,
                    request => {
                        busy += TOOK;
                        self.now = self.now + TOOK;
                        let answer = otherwise(&request).unwrap_or_else(|| self.answer(request.clone()));
                        self.asked.push(request);
                        assert_eq!(next.replace(answer), None, "one request at a time");
                    }
                }
            }
            event = next.expect("it rests, asks, or is idle");
        }
    }

    fn answer(&mut self, request: Effect) -> Event {
        let of = |bucket: Bucket| self.records.keys().filter(move |job| Bucket::of(job) == bucket).cloned();
        match request {
            Effect::Settings => {
                Event::Settings(Ok((self.retention, Some(self.claimed.unwrap_or(self.wall())))))
            }
            Effect::Count(Shelf::Jobs, buckets) => {
                let counts = buckets.iter().map(|bucket| of(*bucket).count()).collect();
                Event::Counted(Shelf::Jobs, buckets, Ok(counts))
            }
            Effect::Count(Shelf::Groups, buckets) => {
                let counts = vec![0; buckets.len()];
                Event::Counted(Shelf::Groups, buckets, Ok(counts))
            }
            Effect::List(shelf, bucket) => {
                Event::Listed(shelf, bucket, Ok(of(bucket).map(|job| job.to_string()).collect()))
            }
            Effect::Read(jobs) => {
                let found = |job| self.records.get(job).cloned().unwrap_or(Found::Absent);
                let found = jobs.iter().map(found).collect();
                Event::Read(jobs, Ok(found))
            }
            Effect::Commit(batch) => {
                let outcome = self.commit(&batch);
                Event::Committed(batch, outcome)
            }
            // The corners are empty.
            Effect::Names(parents) => Event::Names(Ok(vec![None; parents.len()])),
            other => panic!("{other:?} is no request"),
        }
    }

    fn commit(&mut self, batch: &Batch<String>) -> Outcome<()> {
        let mut ops = batch.ops().enumerate();
        assert_eq!(ops.next().unwrap().1, &txn::fence(7), "behind the epoch");
        let mut gone = Vec::new();
        for (at, op) in ops {
            let Op::Delete { path, version: Some(wanted) } = op else { panic!("{op:?}") };
            let job = JobId::new(path.rsplit('/').next().unwrap()).unwrap();
            assert_eq!(path::record(&job), *path);
            let reason = match self.records.get(&job) {
                Some(Found::Over { version, .. }) if version == wanted => {
                    gone.push(job);
                    continue;
                }
                Some(_) => Reason::BadVersion,
                None => Reason::NoNode,
            };
            return Outcome::Rejected(Rejection { at, reason });
        }
        gone.iter().for_each(|job| drop(self.records.remove(job)));
        Outcome::Applied(())
    }

    fn after(&mut self, wait: Duration) -> &mut Self {
        self.now = self.now + wait;
        self
    }
}

#[test]
fn records_go_when_their_time_is_over_and_not_before() {
    let mut stage = Stage::new();
    stage.end(1, Verdict::Cancelled);
    stage.end(2, Verdict::Dead);
    stage.records.insert(job(3), Found::Left);
    stage.after(MINUTE - Duration::from_secs(1)).round();
    assert_eq!(stage.removed, 0);
    stage.after(MINUTE).round();
    assert_eq!(stage.records.keys().cloned().collect::<Vec<_>>(), [job(2), job(3)]);
    stage.after(2 * MINUTE).round();
    assert_eq!((stage.records.len(), stage.removed), (1, 2));
}

#[test]
fn a_bucket_is_not_read_again_before_something_in_it_can_be_due() {
    let mut stage = Stage::new();
    (0..1_000).for_each(|n| stage.end(n, Verdict::Dead));
    stage.round();
    stage.asked.clear();
    for _ in 0..10 {
        stage.after(ROUND).round();
    }
    assert_eq!(stage.asked.len(), 10 * 8, "the settings, six counts and a corner: {:?}", stage.asked.last());
}

#[test]
fn it_rests_as_long_as_it_asks() {
    let mut stage = Stage::new();
    (0..2_000).for_each(|n| stage.end(n, Verdict::Cancelled));
    let (rested, asked) = stage.after(2 * MINUTE).round();
    assert_eq!(stage.removed, 2_000);
    assert!(rested >= asked - TOOK, "{rested:?} of rest, {asked:?} of requests");
}

#[test]
fn a_leader_whose_clock_is_ahead_removes_nothing_early() {
    let mut stage = Stage::new();
    stage.end(1, Verdict::Cancelled);
    // By this leader's clock a day has passed since its claim and the end, and none has.
    stage.claimed = Some(stage.wall());
    stage.after(24 * 60 * MINUTE).round();
    assert_eq!(stage.removed, 0);
    stage.after(2 * MINUTE).round();
    assert_eq!(stage.removed, 1, "what has passed by its monotonic clock counts");
}

#[test]
fn without_settings_nothing_is_removed() {
    let mut stage = Stage::new();
    stage.end(1, Verdict::Cancelled);
    stage.retention = None;
    stage.after(100 * MINUTE).round();
    assert_eq!((stage.removed, stage.asked.len()), (0, 1));
}

#[test]
fn new_settings_hold_from_the_next_round_on() {
    let mut stage = Stage::new();
    stage.end(1, Verdict::Dead);
    stage.after(KEPT_AT_LEAST).round();
    assert_eq!(stage.removed, 0);
    stage.retention = Some(Retention { dead: Duration::ZERO, ..retention() });
    stage.after(ROUND).round();
    assert_eq!(stage.removed, 1);
}

#[test]
fn a_job_that_was_retried_meanwhile_stays_and_the_others_go() {
    let mut stage = Stage::new();
    (1..=3).for_each(|n| stage.end(n, Verdict::Cancelled));
    // All in one bucket, as far as the janitor sees.
    let bucket = Bucket::all().next().unwrap();
    let jobs = (1..=3).map(job).collect::<Vec<_>>();
    stage.after(2 * MINUTE);
    let mut records = stage.records.clone();
    stage.records.remove(&job(2));
    stage.records.insert(job(2), Found::Left);
    stage.round_but(|request| match request {
        Effect::Count(Shelf::Jobs, buckets) => {
            let counts = buckets.iter().map(|of| if *of == bucket { 3 } else { 0 }).collect();
            Some(Event::Counted(Shelf::Jobs, buckets.clone(), Ok(counts)))
        }
        Effect::List(shelf, of) => {
            let names = jobs.iter().map(ToString::to_string).collect();
            Some(Event::Listed(*shelf, *of, Ok(names)))
        }
        Effect::Read(jobs) => {
            let found = jobs.iter().map(|job| records.remove(job).unwrap()).collect();
            Some(Event::Read(jobs.clone(), Ok(found)))
        }
        _ => None,
    });
    assert_eq!(stage.records.keys().cloned().collect::<Vec<_>>(), [job(2)]);
    assert_eq!(stage.removed, 2);
}

#[test]
fn a_lost_reply_is_harmless_and_the_bucket_is_looked_at_again() {
    for applied in [false, true] {
        let mut stage = Stage::new();
        stage.end(1, Verdict::Cancelled);
        stage.after(2 * MINUTE).round_but(|request| match request {
            Effect::Commit(batch) => Some(Event::Committed(batch.clone(), Outcome::Unknown)),
            _ => None,
        });
        if applied {
            stage.records.clear();
        }
        stage.after(ROUND).round();
        assert_eq!(stage.records.len(), 0, "applied: {applied}");
    }
}

#[test]
fn whatever_is_not_answered_the_next_round_makes_up_for_it() {
    type Refuse = fn(&Effect) -> Option<Event>;
    let table: [(&str, Refuse); 5] = [
        ("settings", |request| matches!(request, Effect::Settings).then_some(Event::Settings(Err(())))),
        ("counts", |request| match request {
            Effect::Count(shelf, buckets) => Some(Event::Counted(*shelf, buckets.clone(), Err(()))),
            _ => None,
        }),
        ("list", |request| match request {
            Effect::List(shelf, bucket) => Some(Event::Listed(*shelf, *bucket, Err(()))),
            _ => None,
        }),
        ("read", |request| match request {
            Effect::Read(jobs) => Some(Event::Read(jobs.clone(), Err(()))),
            _ => None,
        }),
        ("commit", |request| match request {
            Effect::Commit(batch) => {
                let rejection = Rejection { at: 0, reason: Reason::NotSent };
                Some(Event::Committed(batch.clone(), Outcome::Rejected(rejection)))
            }
            _ => None,
        }),
    ];
    for (what, refuse) in table {
        let mut stage = Stage::new();
        stage.end(1, Verdict::Cancelled);
        stage.after(2 * MINUTE).round_but(refuse);
        assert_eq!((stage.removed, stage.fenced), (0, false), "{what}");
        stage.after(ROUND).round();
        assert_eq!(stage.removed, 1, "{what}");
    }
}

/// S3
#[test]
fn a_rejected_fence_ends_the_term() {
    let mut stage = Stage::new();
    stage.end(1, Verdict::Cancelled);
    stage.after(2 * MINUTE).round_but(|request| match request {
        Effect::Commit(batch) => {
            let rejection = Rejection { at: 0, reason: Reason::BadVersion };
            Some(Event::Committed(batch.clone(), Outcome::Rejected(rejection)))
        }
        _ => None,
    });
    assert!(stage.fenced && stage.removed == 0);
}

#[test]
fn a_namespace_above_its_count_is_brought_below_it_by_the_oldest_ends() {
    let mut stage = Stage::new();
    stage.retention = Some(Retention { records: 256 * 8, dead: 1_000 * MINUTE, ..retention() });
    for n in 0..4_000 {
        stage.end(n, Verdict::Dead);
        stage.now = Millis(stage.now.0 + 1);
    }
    stage.after(MINUTE).round();
    assert!(stage.records.len() <= 256 * 8, "{} are left", stage.records.len());
    for bucket in Bucket::all() {
        let ends = |there: bool| {
            let of = (0..4_000).filter(|n| Bucket::of(&job(*n)) == bucket);
            of.filter(|n| stage.records.contains_key(&job(*n)) == there).collect::<Vec<_>>()
        };
        assert!(ends(false).last() < ends(true).first() || ends(true).is_empty(), "{bucket:?}");
    }
}

/// Rounds of which one corner has these znodes in it; gives what was committed about it.
fn tidied(corner: &str, names: &[&str], stats: &[Option<Stat>], outcome: &Outcome<()>) -> Vec<Vec<Op>> {
    let mut stage = Stage::new();
    let mut committed = Vec::new();
    let mut looked = false;
    while !looked {
        stage.round_but(|request| match request {
            Effect::Names(parents) if parents == &[corner.to_owned()] => {
                looked = true;
                let names = names.iter().map(|name| (*name).to_owned()).collect();
                Some(Event::Names(Ok(vec![Some(names)])))
            }
            Effect::Stat(paths) => {
                assert_eq!(paths.len(), stats.len(), "{paths:?}");
                Some(Event::Stats(Ok(stats.to_vec())))
            }
            Effect::Commit(batch) => {
                committed.push(batch.ops().cloned().collect());
                Some(Event::Committed(batch.clone(), outcome.clone()))
            }
            _ => None,
        });
    }
    assert_eq!(stage.removed, 0, "none of it is a record");
    committed
}

/// L6: that of a client which ended between making it and submitting. ZooKeeper passes over it.
#[test]
fn a_container_that_never_had_a_child_goes_after_an_hour() {
    let (old, new) = (WallMillis(WALL.0 - 3_600_000), WallMillis(WALL.0 - 1_000));
    let stats = [Some((old, 0)), Some((new, 0)), Some((old, 2)), None];
    let lanes = Bucket::all().nth(4).unwrap().lanes();
    for corner in [path::DELAYED, &lanes] {
        let committed = tidied(corner, &["1", "2", "3", "4"], &stats, &Outcome::Applied(()));
        let gone = Op::Delete { path: format!("{corner}/1"), version: None };
        assert_eq!(committed, [vec![txn::fence(7), gone]], "{corner}");
    }
}

/// L6
#[test]
fn a_note_whose_record_is_gone_goes_unless_the_job_is_submitted_again() {
    let stats = [None, Some((WALL, 0))];
    let taken = Outcome::Rejected(Rejection { at: 1, reason: Reason::NodeExists });
    for outcome in [Outcome::Applied(()), taken] {
        let names = ["job-1", "job-2", "no job's"];
        let committed = tidied(path::QUARANTINE, &names, &stats, &outcome);
        assert_eq!(committed, [[vec![txn::fence(7)], txn::remove_note(&job(1))].concat()]);
    }
}

/// What if the reply is lost?
#[test]
fn a_corner_without_an_answer_is_looked_at_when_its_turn_comes_again() {
    let (mut stage, mut asked) = (Stage::new(), Vec::new());
    for _ in 0..300 {
        stage.round_but(|request| match request {
            Effect::Names(parents) => {
                asked.extend(parents.clone());
                Some(Event::Names(Err(())))
            }
            _ => None,
        });
    }
    let times = |corner: &str| asked.iter().filter(|asked| *asked == corner).count();
    assert!(times(path::QUARANTINE) >= 18 && times(path::DELAYED) >= 18);
    assert!(Bucket::all().all(|bucket| times(&bucket.lanes()) >= 1));
}

/// One group, whose bucket is the only one that has any.
mod groups {
    use std::collections::BTreeSet;

    use uuid::Uuid;

    use super::*;
    use crate::group::{End, GroupRecord, Mark, Parent, Stage as GroupStage};
    use crate::job::{Membership, Role};
    use crate::name::Kind;

    fn id() -> GroupId {
        GroupId::new("batch").unwrap()
    }

    fn done(at: WallMillis) -> GroupRecord {
        let record = GroupRecord::new(Kind::new("sum").unwrap(), Uuid::nil(), at);
        GroupRecord { total: Some(3), stage: GroupStage::Done { at }, ..record }
    }

    /// A tree of znodes, with the group in it.
    struct Tree {
        stage: Stage,
        group: GroupRecord,
        znodes: BTreeSet<String>,
        read: usize,
    }

    impl Tree {
        /// Of three members, with their records.
        fn new(ends: [End; 3]) -> Self {
            let stage = Stage::new();
            let group = done(stage.wall());
            let mut tree = Self { stage, group, znodes: BTreeSet::new(), read: 0 };
            let (wall, znodes) = (tree.stage.wall(), &mut tree.znodes);
            znodes.extend([path::group(&id()), path::members(&id())]);
            znodes.extend([path::mark_chunk(&id(), 0), path::place_chunk(&id(), 0)]);
            znodes.insert(path::mark(&id(), Mark::Join, End::Succeeded));
            for (number, end) in (0..).zip(ends) {
                znodes.insert(path::mark(&id(), Mark::Member(number), end));
                let job = JobId::member(&tree.group.kind, &id(), number).unwrap();
                let found = over(wall);
                tree.stage.records.insert(job, found);
            }
            tree.stage.records.insert(tree.group.join_id(&id()).unwrap(), over(wall));
            tree
        }

        fn round(&mut self) {
            let mut event = Event::Go;
            loop {
                let effects = self.stage.feed(event);
                let mut next = None;
                for effect in effects {
                    let answer = match effect {
                        Effect::Rest(wait) => {
                            self.stage.now = self.stage.now + wait;
                            Event::Go
                        }
                        Effect::Idle => return,
                        Effect::Removed(count) => {
                            self.stage.removed += count;
                            continue;
                        }
                        Effect::Count(Shelf::Groups, buckets) => {
                            let there = self.znodes.contains(&path::group(&id()));
                            let count = |of: &Bucket| usize::from(there && *of == Bucket::of_group(&id()));
                            let counts = buckets.iter().map(count).collect();
                            Event::Counted(Shelf::Groups, buckets, Ok(counts))
                        }
                        Effect::List(Shelf::Groups, bucket) => {
                            self.read += 1;
                            Event::Listed(Shelf::Groups, bucket, Ok(vec![id().to_string()]))
                        }
                        Effect::Groups(groups) => {
                            let found = (self.group.clone(), 4, self.stage.wall());
                            let GroupStage::Done { at } = found.0.stage else { panic!("{found:?}") };
                            Event::Groups(groups, Ok(vec![Some((found.0, found.1, at))]))
                        }
                        Effect::Names(parents) => {
                            let below = |parent: &String| {
                                let inside = format!("{parent}/");
                                let children =
                                    self.znodes.iter().filter_map(|path| path.strip_prefix(&inside));
                                children.filter(|name| !name.contains('/')).map(String::from).collect()
                            };
                            Event::Names(Ok(parents.iter().map(|parent| Some(below(parent))).collect()))
                        }
                        Effect::Commit(batch) => {
                            let outcome = self.commit(&batch);
                            Event::Committed(batch, outcome)
                        }
                        other => self.stage.answer(other),
                    };
                    assert_eq!(next.replace(answer), None, "one request at a time");
                }
                event = next.expect("it rests, asks, or is idle");
            }
        }

        fn commit(&mut self, batch: &Batch<String>) -> Outcome<()> {
            assert_eq!(batch.ops().next(), Some(&txn::fence(7)), "behind the epoch");
            let (mut znodes, mut records) = (self.znodes.clone(), self.stage.records.clone());
            for (at, op) in batch.ops().enumerate().skip(1) {
                let Op::Delete { path, version } = op else { panic!("{op:?}") };
                let rejected = |reason| Outcome::Rejected(Rejection { at, reason });
                if path.starts_with("/jobs/") {
                    let job = JobId::new(path.rsplit('/').next().unwrap()).unwrap();
                    match records.get(&job) {
                        Some(Found::Over { version: there, .. }) if Some(*there) == *version => {}
                        Some(_) => return rejected(Reason::BadVersion),
                        None => return rejected(Reason::NoNode),
                    }
                    records.remove(&job);
                } else if znodes.iter().any(|other| other.starts_with(&format!("{path}/"))) {
                    return rejected(Reason::NotEmpty);
                } else if !znodes.remove(path) {
                    return rejected(Reason::NoNode);
                }
            }
            (self.znodes, self.stage.records) = (znodes, records);
            Outcome::Applied(())
        }
    }

    fn over(at: WallMillis) -> Found {
        Found::Over {
            version: 3,
            verdict: Verdict::Cancelled,
            at,
            modified: at,
            grouped: true,
            counted: true,
            sub_jobs: None,
        }
    }

    /// Of one that was retried after its group had gone on.
    fn over_again(at: WallMillis, nested: Option<GroupId>) -> Found {
        let Found::Over { version, verdict, modified, grouped, .. } = over(at) else { unreachable!() };
        Found::Over { version, verdict, at, modified, grouped, counted: false, sub_jobs: nested }
    }

    const ENDS: [End; 3] = [End::Succeeded, End::Dead, End::Succeeded];

    #[test]
    fn a_group_goes_with_all_of_its_records_once_the_longest_of_their_times_is_over() {
        let mut tree = Tree::new(ENDS);
        tree.stage.after(MINUTE + ROUND);
        tree.round();
        assert_eq!((tree.stage.records.len(), tree.znodes.len()), (4, 8), "one is dead: two minutes");
        tree.stage.after(MINUTE + ROUND);
        tree.round();
        assert_eq!((tree.stage.records.len(), tree.stage.removed), (0, 4));
        assert!(tree.znodes.is_empty(), "{:?}", tree.znodes);
    }

    #[test]
    fn a_group_with_an_open_member_stays_as_it_is() {
        let mut tree = Tree::new(ENDS);
        tree.znodes.insert(path::place(&id(), 7));
        tree.stage.after(100 * MINUTE);
        tree.round();
        assert_eq!((tree.stage.records.len(), tree.znodes.len()), (4, 9));
        tree.znodes.remove(&path::place(&id(), 7));
        tree.stage.after(MINUTE);
        tree.round();
        assert!(tree.znodes.is_empty(), "{:?}", tree.znodes);
    }

    #[test]
    fn a_member_that_was_retried_after_the_join_keeps_its_group_until_it_is_over_again() {
        let mut tree = Tree::new(ENDS);
        let job = JobId::member(&tree.group.kind, &id(), 1).unwrap();
        tree.stage.records.insert(job.clone(), Found::Left);
        tree.stage.after(100 * MINUTE);
        tree.round();
        assert!(tree.stage.records.contains_key(&job));
        assert!(tree.znodes.contains(&path::group(&id())), "its record goes last");
        let at = tree.stage.wall();
        tree.stage.records.insert(job.clone(), over_again(at, None));
        tree.stage.after(MINUTE / 2);
        tree.round();
        assert!(tree.stage.records.contains_key(&job), "S1: it is kept for its own time");
        tree.stage.after(MINUTE / 2);
        tree.round();
        assert_eq!((tree.stage.records.len(), tree.znodes.len()), (0, 0));
    }

    /// S1: as theirs waits for its end, which would be gone.
    #[test]
    fn a_member_that_was_retried_and_has_sub_jobs_goes_with_them() {
        let mut tree = Tree::new(ENDS);
        let job = JobId::member(&tree.group.kind, &id(), 1).unwrap();
        let nested = GroupId::new("of-its-sub-jobs").unwrap();
        tree.stage.records.insert(job.clone(), over_again(tree.stage.wall(), Some(nested.clone())));
        tree.stage.after(100 * MINUTE);
        tree.round();
        assert_eq!(tree.stage.records.keys().collect::<Vec<_>>(), [&job]);
        assert!(tree.znodes.is_empty(), "{:?}", tree.znodes);
        let outer = Membership { group: id(), role: Role::Member(1), counted: false };
        let parent = Parent {
            job: job.clone(),
            kind: tree.group.kind.clone(),
            generation: 2,
            finish: false,
            membership: Some(outer),
            depth: 1,
        };
        let mut tree = Tree::new(ENDS);
        tree.group.parent = Some(parent);
        tree.stage.records.insert(job.clone(), over_again(tree.stage.wall(), Some(id())));
        tree.stage.after(100 * MINUTE);
        tree.round();
        assert!(!tree.stage.records.contains_key(&job), "theirs takes it");
    }

    #[test]
    fn a_record_that_was_purged_does_not_keep_its_group() {
        let mut tree = Tree::new(ENDS);
        tree.stage.records.clear();
        tree.stage.after(100 * MINUTE);
        tree.round();
        assert!(tree.znodes.is_empty(), "{:?}", tree.znodes);
    }

    #[test]
    fn a_group_that_is_not_due_is_not_looked_at_in_every_round() {
        let mut tree = Tree::new(ENDS);
        for _ in 0..5 {
            tree.stage.after(ROUND);
            tree.round();
        }
        assert_eq!(tree.read, 1);
    }
}

/// What a term lists first, of buckets that all have something.
fn first_of_term(epoch: i32) -> (Shelf, usize) {
    let mut janitor = Janitor::new(epoch);
    let mut events = vec![Event::Go];
    for now in 0.. {
        let mut out = Vec::new();
        let event = events.pop().unwrap_or(Event::Go);
        janitor.handle(Millis(now * 1_000), WALL, event, &mut out);
        for effect in out {
            match effect {
                Effect::Rest(_) => {}
                Effect::Settings => events.push(Event::Settings(Ok((Some(retention()), Some(WALL))))),
                Effect::Count(shelf, buckets) => {
                    let counts = vec![1; buckets.len()];
                    events.push(Event::Counted(shelf, buckets, Ok(counts)));
                }
                Effect::List(shelf, bucket) => return (shelf, bucket.index()),
                other => panic!("{other:?}"),
            }
        }
    }
    unreachable!("it lists a bucket")
}

/// L6, also where leaders change sooner than all buckets are looked at.
#[test]
fn terms_that_are_short_come_to_every_bucket_in_the_end() {
    let firsts: Vec<_> = (1..=512).map(first_of_term).collect();
    for shelf in [Shelf::Jobs, Shelf::Groups] {
        let buckets = firsts.iter().filter(|(listed, _)| *listed == shelf).map(|(_, bucket)| bucket);
        assert_eq!(buckets.collect::<BTreeSet<_>>().len(), 256, "{shelf:?}");
    }
}

#[test]
fn a_pass_comes_to_every_bucket_wherever_it_begins() {
    let mut stage = Stage::new();
    (0..2_000).for_each(|n| stage.end(n, Verdict::Dead));
    stage.round();
    let listed = stage.asked.iter().filter_map(|effect| match effect {
        Effect::List(Shelf::Jobs, bucket) => Some(bucket.index()),
        _ => None,
    });
    let listed: Vec<_> = listed.collect();
    let held: BTreeSet<_> = stage.records.keys().map(|job| Bucket::of(job).index()).collect();
    assert_eq!(listed.len(), held.len(), "each once");
    assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), held);
}

//! What is fuzzed: functions of any bytes, which must not panic, and what they promise beyond that.
//!
//! Two drivers share them: libFuzzer (`crates/core/fuzz`), and `tests/fuzz`, which mutates the corpus a little in CI.
//! A new stored type joins [`wire`]; a new parser of names or paths joins [`path`] or [`name`].

use std::fmt::Debug;

use allocation_counter::measure;
use bellwether_core::budget::{MAX_NAME_BYTES, MAX_RECORD_BYTES, MAX_SCHEDULE_ID_BYTES};
use bellwether_core::group::GroupRecord;
use bellwether_core::job::{Assignment, JobRecord, QueueEntry, TurnIndex};
use bellwether_core::machine::assigner::Strategy;
use bellwether_core::machine::election::campaign::{self, Campaign, Campaigner, Effect, Event, Reply};
use bellwether_core::name::{AffinityKey, GroupId, JobId, Kind, Lane, NodeId, ScheduleId, Tag, WorkerId};
use bellwether_core::outcome::Outcome;
use bellwether_core::path::{self as paths, GroupPlace, Place};
use bellwether_core::retention::Retention;
use bellwether_core::schedule::{ScheduleRecord, parse_tick, tick_id};
use bellwether_core::time::{Millis, WallMillis};
use bellwether_core::wire::{Layout, Stored, WireError, decode, encode};
use bellwether_core::worker::{EpochRecord, PauseRecord, WorkerInfo};
use uuid::Uuid;

/// Most that decoding may hold at a time: what is read, once as it is stored and once as a value, and a lying length's
/// worth of either. Whatever the bytes say, it is a small multiple of the largest record.
const MOST_DECODED: u64 = 4 * MAX_RECORD_BYTES as u64;

/// A znode's bytes as every type that is stored in one. At most one of them takes it.
pub(crate) fn wire(bytes: &[u8]) {
    let taken = [
        stored::<JobRecord>(bytes),
        stored::<QueueEntry>(bytes),
        stored::<Assignment>(bytes),
        stored::<WorkerInfo>(bytes),
        stored::<EpochRecord>(bytes),
        stored::<Layout>(bytes),
        stored::<TurnIndex>(bytes),
        stored::<Retention>(bytes),
        stored::<PauseRecord>(bytes),
        stored::<ScheduleRecord>(bytes),
        stored::<GroupRecord>(bytes),
    ];
    assert!(taken.iter().filter(|taken| **taken).count() <= 1, "one value of two types");
}

fn stored<T: Stored + PartialEq + Debug>(bytes: &[u8]) -> bool {
    let mut read = Err(WireError::Magic);
    let held = measure(|| read = decode::<T>(bytes)).bytes_max;
    assert!(held <= MOST_DECODED, "{held} bytes held for {} bytes: {read:?}", bytes.len());
    let Ok(value) = read else { return false };

    let written = encode(&value);
    assert!(written.len() <= bytes.len(), "the shortest spelling is written");
    assert_eq!(decode::<T>(&written).as_ref(), Ok(&value));
    for at in [FORMAT, SCHEMA] {
        let mut newer = written.clone();
        newer[at] += 1;
        assert!(decode::<T>(&newer).is_err_and(|error| error.is_newer()), "{newer:?} is of a newer build");
    }
    let mut trailed = written.clone();
    trailed.push(0);
    assert!(matches!(decode::<T>(&trailed), Err(WireError::Trailing(1) | WireError::TooLarge { .. })));
    assert!(decode::<T>(&written[..written.len() - 1]).is_err(), "a part of a value is none");
    true
}

/// Where the header has the versions.
const FORMAT: usize = 2;
const SCHEMA: usize = 4;

/// A path that a watch reported: what is understood of it is all of it.
pub(crate) fn path(bytes: &[u8]) {
    let Ok(path) = std::str::from_utf8(bytes) else { return };
    let spelt = match paths::parse(path) {
        Place::QueueEntry(job) => paths::queue_entry(&job),
        Place::DelayedEntry(minute, job) => paths::delayed_entry(minute, &job),
        Place::Worker(worker) => paths::worker(worker),
        Place::Inbox(worker) => paths::inbox(worker),
        Place::Assignment(worker, job) => paths::assignment(worker, &job),
        Place::Turn(turn, job) => paths::turn(&turn, &job),
        Place::Schedule(schedule) => paths::schedule(&schedule),
        Place::Group(GroupPlace::Record(group)) => paths::group(&group),
        Place::Group(GroupPlace::Mark(group, mark, end)) => paths::mark(&group, mark, end),
        Place::Group(GroupPlace::Member(group, number)) => paths::place(&group, number),
        Place::Other => return,
    };
    assert_eq!(spelt, path, "a path of another spelling is somebody else's znode");
}

/// Any text where a name is expected: an id, a znode's name, a strategy.
pub(crate) fn name(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let made_of = |more: &[u8]| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || more.contains(&byte);
        let fits = (1..=MAX_NAME_BYTES).contains(&text.len());
        fits && text.bytes().all(allowed) && text != "." && text != ".."
    };
    let composed =
        [JobId::new(text).map(|name| name.to_string()), GroupId::new(text).map(|name| name.to_string())];
    for kept in composed {
        assert_eq!(kept.as_deref().ok(), made_of(b"._-:@").then_some(text), "{kept:?}");
    }
    let kept = [
        JobId::plain(text).map(|name| name.to_string()),
        GroupId::plain(text).map(|name| name.to_string()),
        Kind::new(text).map(|name| name.to_string()),
        Tag::new(text).map(|name| name.to_string()),
        AffinityKey::new(text).map(|name| name.to_string()),
        Lane::new(text).map(|name| name.to_string()),
        NodeId::new(text).map(|name| name.to_string()),
    ];
    for kept in kept {
        assert_eq!(kept.as_deref().ok(), made_of(b"._-").then_some(text), "{kept:?}");
    }
    let schedule = ScheduleId::new(text);
    let short = text.len() <= MAX_SCHEDULE_ID_BYTES;
    assert_eq!(
        schedule.as_ref().ok().map(ScheduleId::as_str),
        made_of(b"._-").then_some(text).filter(|_| short)
    );
    if let Ok(schedule) = schedule {
        let job = tick_id(&schedule, WallMillis(u64::MAX));
        assert_eq!(parse_tick(&job).map(|(of, _)| of), Some(schedule));
    }
    if let Ok(job) = JobId::new(text) {
        let entry = paths::queue_entry(&job);
        assert_eq!(paths::parse(&entry), Place::QueueEntry(job));
    }
    if let Some(worker) = WorkerId::parse(text) {
        assert_eq!(worker.to_string(), text);
    }
    if let Some((generation, job)) = paths::parse_turn(text) {
        assert_eq!(format!("{generation}-{job}"), text);
    }
    if let Some(minute) = paths::parse_minute(text) {
        assert_eq!(minute.to_string(), text);
    }
    drop(text.parse::<Strategy>());
    candidates(text);
}

/// Lines as the children of `/election`, which anybody may put anything into.
fn candidates(text: &str) {
    let own = Uuid::from_u128(1);
    let mut campaign = Campaign::new(Campaigner {
        strategy: campaign::Strategy::Queue,
        node: NodeId::new("n").expect("a name"),
        session: 1,
        uuid: own,
        number: 1,
    });
    let mut out = Vec::new();
    campaign.handle(Millis(0), Event::Connected, &mut out);
    let [Effect::Send(ticket, _)] = out[..] else { panic!("a campaign looks first: {out:?}") };
    let children: Vec<String> = text.lines().map(str::to_owned).collect();
    let listed = Reply::Listed(Outcome::Applied(children.clone()));
    campaign.handle(Millis(1), Event::Reply(ticket, listed), &mut out);
    let stands = out.iter().find_map(|effect| match effect {
        Effect::Candidacy(campaign::Candidacy::First { candidate }) => Some(candidate.clone()),
        Effect::Candidacy(_) | Effect::Send(..) | Effect::Refused(_) => None,
    });
    if let Some(first) = stands {
        assert!(first.starts_with(&paths::candidate_prefix(own)), "{first} is not ours");
        assert!(children.iter().any(|child| paths::candidate(child) == first), "{first} is not there");
    }
}

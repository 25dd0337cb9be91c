//! The fuzz targets: functions of arbitrary bytes. They must not panic, and each asserts further properties.
//!
//! Two drivers share them: libFuzzer (`crates/core/fuzz`), and `tests/fuzz`, which runs a small number of mutants in
//! CI. [`wire`] decodes all stored types. Add a new parser of names or paths to [`path`] or [`name`].

use std::fmt::Debug;

use allocation_counter::measure;
use bellwether_core::budget::{MAX_NAME_BYTES, MAX_RECORD_BYTES, MAX_SCHEDULE_ID_BYTES};
use bellwether_core::job::QueueEntry;
use bellwether_core::machine::election::campaign::{self, Campaign, Campaigner, Effect, Event, Reply};
use bellwether_core::name::{
    AffinityKey, GroupId, JobId, Kind, Lane, NodeId, ScheduleId, StrategyName, Tag, WorkerId,
};
use bellwether_core::outcome::Outcome;
use bellwether_core::path::{self as paths, GroupPlace, Place};
use bellwether_core::ready::ReadyEntry;
use bellwether_core::schedule::{parse_tick, tick_id};
use bellwether_core::time::{Millis, WallMillis};
use bellwether_core::wire::{Stored, Types, WireError, decode, each_type, encode};
use uuid::Uuid;

/// Most bytes that decoding may allocate at a time: the input in its stored form and as a value, and as much again
/// for a wrong length. For any input it is a small multiple of the largest record.
const MOST_DECODED: u64 = 4 * MAX_RECORD_BYTES as u64;

/// Decodes bytes as every stored type. At most one of them accepts the bytes.
pub(crate) fn wire(bytes: &[u8]) {
    let taken = types_of(bytes);
    assert!(taken.len() <= 1, "the bytes decode as the types {taken:?}");
}

/// Returns the kinds of the types that accept these bytes.
pub(crate) fn types_of(bytes: &[u8]) -> Vec<u8> {
    struct Decoded<'a>(&'a [u8], Vec<u8>);
    impl Types for Decoded<'_> {
        fn visit<T: Stored + PartialEq + Debug>(&mut self) {
            if stored::<T>(self.0) {
                self.1.push(T::KIND);
            }
        }
    }
    let mut decoded = Decoded(bytes, Vec::new());
    each_type(&mut decoded);
    decoded.1
}

fn stored<T: Stored + PartialEq + Debug>(bytes: &[u8]) -> bool {
    let mut read = Err(WireError::Magic);
    let held = measure(|| read = decode::<T>(bytes)).bytes_max;
    assert!(held <= MOST_DECODED, "decoding {} bytes allocated {held} bytes: {read:?}", bytes.len());
    let Ok(value) = read else { return false };

    let written = encode(&value);
    assert!(written.len() <= bytes.len(), "encode must write the shortest form");
    assert_eq!(decode::<T>(&written).as_ref(), Ok(&value));
    for at in [FORMAT, SCHEMA] {
        let mut newer = written.clone();
        newer[at] += 1;
        assert!(
            decode::<T>(&newer).is_err_and(|error| error.is_newer()),
            "{newer:?} must be reported as newer"
        );
    }
    let mut trailed = written.clone();
    trailed.push(0);
    assert!(matches!(decode::<T>(&trailed), Err(WireError::Trailing(1) | WireError::TooLarge { .. })));
    assert!(decode::<T>(&written[..written.len() - 1]).is_err(), "a truncated value must not decode");
    true
}

/// The positions of the versions in the header.
const FORMAT: usize = 2;
const SCHEMA: usize = 4;

/// A path that a watch reported: formatting the parsed path must give the same path.
pub(crate) fn path(bytes: &[u8]) {
    let Ok(path) = std::str::from_utf8(bytes) else { return };
    let spelt = match paths::parse(path) {
        Place::Ready(entry) => paths::ready_entry(&entry),
        Place::ReadyClass(class) => paths::ready_class(&class),
        Place::ReadySlot(class, slot) => paths::ready_slot(&class, slot),
        Place::DelayedEntry(delay, job) => paths::delayed_entry(delay, &job),
        Place::Worker(worker) => paths::worker(worker),
        Place::Inbox(worker) => paths::inbox(worker),
        Place::Assignment(worker, job) => paths::assignment(worker, &job),
        Place::Turn(turn, job) => paths::turn(&turn, &job),
        Place::Schedule(schedule) => paths::schedule(&schedule),
        Place::Group(GroupPlace::Record(group)) => paths::group(&group),
        Place::Group(GroupPlace::Mark(group, mark, end)) => paths::mark(&group, mark, end),
        Place::Group(GroupPlace::Member(group, number)) => paths::place(&group, number),
        Place::SegmentChunk(segment, chunk) => paths::segment_chunk(segment, chunk),
        Place::Other => return,
    };
    assert_eq!(spelt, path, "a path with another spelling is a foreign znode");
}

/// Any text where a name is expected: an id, the name of a znode, a strategy.
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
        StrategyName::new(text).map(|name| name.to_string()),
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
        let at = ReadyEntry::of(&job, &QueueEntry::new(Kind::new("sum").expect("letters"), 1, 1));
        assert_eq!(paths::parse(&paths::ready_entry(&at)), Place::Ready(at));
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
    candidates(text);
}

/// Uses the lines as the children of `/election`, where any client may create znodes.
fn candidates(text: &str) {
    let own = Uuid::from_u128(1);
    let mut campaign = Campaign::new(Campaigner {
        strategy: campaign::Strategy::Queue,
        node: NodeId::new("n").expect("a valid name"),
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
        assert!(
            first.starts_with(&paths::candidate_prefix(own)),
            "{first} is not a candidate of this campaign"
        );
        assert!(children.iter().any(|child| paths::candidate(child) == first), "{first} was not listed");
    }
}

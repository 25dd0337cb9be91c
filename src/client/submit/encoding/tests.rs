//! Submissions and schedules of clients with codecs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use bellwether_core::job::JobRecord;
use bellwether_core::path;
use bellwether_core::remedy::ErrorClass;

use super::super::Accepted;
use super::*;
use crate::client::in_memory::{DEADLINE, World, id};
use crate::client::job::{Job, JobKind};
use crate::client::{Added, MemberEnd, ResultError, Schedule, ScheduleError, SubmitError};
use crate::codec::PayloadCodec;

/// Prefixes a key and a number that differs each time.
struct Numbered {
    key: u8,
    next: AtomicU8,
    /// Whether a failure passes.
    retryable: bool,
}

impl Numbered {
    fn error(&self, text: &str) -> CodecError {
        if self.retryable { CodecError::retryable(text) } else { CodecError::invalid(text) }
    }
}

impl PayloadCodec for Numbered {
    async fn encode(&self, plain: Vec<u8>, _: &CodecContext) -> Result<Vec<u8>, CodecError> {
        if plain.ends_with(b"\"unfit\"") {
            return Err(self.error("it is unfit"));
        }
        if plain.ends_with(b"\"slow\"") {
            std::future::pending::<()>().await;
        }
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        Ok([&[self.key, number], &plain[..]].concat())
    }

    async fn decode(&self, encoded: Vec<u8>, _: &CodecContext) -> Result<Vec<u8>, CodecError> {
        match encoded.split_first() {
            Some((key, rest)) if *key == self.key => Ok(rest[1..].to_vec()),
            _ => Err(self.error("another key")),
        }
    }
}

fn codec(key: u8, retryable: bool) -> Option<Codec> {
    Some(Codec::new(Numbered { key, next: AtomicU8::new(0), retryable }))
}

fn job(payload: &str) -> Job {
    Job::new("sum", payload).id("a")
}

fn submit(world: &World, client: &Client, payload: &str) -> Result<Accepted, SubmitError> {
    world.run(client.submit(job(payload))).map(|handle| handle.accepted())
}

fn stage() -> (Arc<World>, Client) {
    let world = World::new();
    let client = world.client_with(codec(1, false));
    (world, client)
}

#[test]
fn equal_plain_payloads_are_the_same_job_whatever_their_stored_bytes_are() {
    let (world, client) = stage();
    assert_eq!(submit(&world, &client, "x"), Ok(Accepted::New));
    let stored = world.record(&id("a")).payload;
    assert!(is_encoded(&stored) && !is_for_kind(&stored));
    assert_eq!(submit(&world, &client, "x"), Ok(Accepted::Same));
    assert_eq!(world.record(&id("a")).payload, stored, "nothing was written");
    let other = submit(&world, &client, "y").unwrap_err();
    assert!(matches!(other, SubmitError::Conflict { same_kind: true, .. }));
    let product = world.run(client.submit(Job::new("product", "x").id("a"))).unwrap_err();
    assert!(matches!(product, SubmitError::Conflict { same_kind: false, .. }));
}

#[test]
fn a_payload_that_was_stored_without_a_codec_is_compared_as_it_is() {
    let (world, client) = stage();
    let plain = world.client();
    assert_eq!(submit(&world, &plain, "x"), Ok(Accepted::New));
    assert_eq!(submit(&world, &client, "x"), Ok(Accepted::Same));
    let other = submit(&world, &client, "y").unwrap_err();
    assert!(matches!(other, SubmitError::Conflict { .. }));
}

#[test]
fn the_payload_of_a_schedules_job_is_sent_as_it_is_stored() {
    let (world, client) = stage();
    let schedule = Schedule::every("s", Duration::from_secs(60), Job::new("sum", "x")).job_id("a");
    world.run(client.schedules().add(&schedule)).unwrap();
    world.run(client.schedules().trigger(&bellwether_core::name::ScheduleId::new("s").unwrap())).unwrap();
    let stored = world.record(&id("a")).payload;
    assert!(is_for_kind(&stored));
    assert_eq!(submit(&world, &client, "x"), Ok(Accepted::Same));
    world.run(client.cancel(&id("a"))).unwrap();
    let again = job("x").if_exists(crate::client::IfExists::Again);
    assert_eq!(world.run(client.submit(again)).unwrap().generation(), 2);
}

#[test]
fn a_payload_that_cannot_be_encoded_or_compared_is_an_error() {
    for (retryable, class) in [(true, ErrorClass::Unavailable), (false, ErrorClass::Invalid)] {
        let world = World::new();
        let client = world.client_with(codec(1, retryable));
        let error = submit(&world, &client, "unfit").unwrap_err();
        assert!(matches!(&error, SubmitError::Encode { .. }), "{error:?}");
        assert_eq!(error.class(), class);
        assert!(world.tree().get(&path::record(&id("a"))).is_none());
        let other = world.client_with(codec(2, retryable));
        assert_eq!(submit(&world, &other, "x"), Ok(Accepted::New));
        let error = submit(&world, &client, "x").unwrap_err();
        assert!(matches!(&error, SubmitError::Undecodable { .. }), "{error:?}");
    }
    let (world, client) = stage();
    let began = world.now();
    let error = submit(&world, &client, "slow").unwrap_err();
    assert_eq!(world.now().since(began), DEADLINE);
    assert_eq!(error.class(), ErrorClass::Unavailable);
}

#[test]
fn jobs_of_a_lane_keep_their_order_while_their_payloads_are_encoded() {
    let (world, client) = stage();
    let slow = Job::new("sum", "slow").id("slow").lane("l");
    let fast = Job::new("sum", "x").id("fast").lane("l");
    let free = Job::new("sum", "x").id("free");
    let began = world.now();
    let (first, second, third) = world.run(async {
        let free = async {
            client.submit(free).await.unwrap();
            world.now()
        };
        futures::join!(client.submit(slow), client.submit(fast), free)
    });
    assert!(first.is_err() && (second.is_err() || second.is_ok()));
    assert_eq!(third, began, "a job without a lane does not wait");
    assert!(world.now() > began);
}

fn schedule(payload: &str) -> Schedule {
    Schedule::every("s", Duration::from_secs(60), Job::new("sum", payload))
}

#[test]
fn a_schedule_with_an_equal_plain_payload_is_unchanged() {
    let (world, client) = stage();
    let add = |client: &Client, schedule: Schedule| world.run(client.schedules().add(&schedule));
    assert_eq!(add(&client, schedule("x")), Ok(Added::Created));
    assert_eq!(add(&client, schedule("x")), Ok(Added::Unchanged));
    let conflict = |result: Result<Added, ScheduleError>| match result {
        Err(ScheduleError::Conflict { differs, .. }) => differs,
        other => panic!("{other:?}"),
    };
    assert_eq!(conflict(add(&client, schedule("y"))), "payload");
    let other_kind = Schedule::every("s", Duration::from_secs(60), Job::new("product", "x"));
    assert_eq!(conflict(add(&client, other_kind)), "kind of job");
    assert_eq!(
        add(&client, schedule("x").grace(Duration::from_secs(120)).replace(true)),
        Ok(Added::Replaced)
    );

    // Another key: a difference, unless the codec asks to try later.
    let lost = world.client_with(codec(2, false));
    assert_eq!(conflict(add(&lost, schedule("x").grace(Duration::from_secs(120)))), "payload");
    let later = world.client_with(codec(2, true));
    let error = add(&later, schedule("x")).unwrap_err();
    assert!(matches!(&error, ScheduleError::Codec { .. }), "{error:?}");
    assert_eq!(error.class(), ErrorClass::Unavailable);
    assert_eq!(add(&lost, schedule("x").replace(true)), Ok(Added::Replaced));
    let error = add(&lost, schedule("unfit")).unwrap_err();
    assert!(matches!(&error, ScheduleError::Codec { .. }));
    assert_eq!(error.class(), ErrorClass::Invalid);

    // A payload that was stored without a codec differs from an encoded one.
    let (world, client) = stage();
    let plain = world.client();
    world.run(plain.schedules().add(&schedule("x"))).unwrap();
    assert_eq!(conflict(world.run(client.schedules().add(&schedule("x")))), "payload");
}

struct Sum;

impl JobKind for Sum {
    const NAME: &'static str = "sum";
    type Payload = String;
    type Result = i64;
}

struct Other;

impl JobKind for Other {
    const NAME: &'static str = "other";
    type Payload = String;
    type Result = i64;
}

#[test]
fn a_result_is_decoded_for_a_client_with_the_codec_and_typed_by_the_kind() {
    let (world, client) = stage();
    let plain = world.client();
    submit(&world, &client, "x").unwrap();
    let worker = world.worker(1, &World::registration(&["sum"], 1, &[]));
    let codec = codec(1, false).unwrap();
    let context = CodecContext::new(Part::Result, bellwether_core::name::Kind::new("sum").unwrap(), id("a"));
    let result = world.run(codec.encode(&Payload::json(*b"7").unwrap(), &context)).unwrap();
    world.assign(&id("a"), worker);
    world.close(&id("a"), worker, bellwether_core::job::Ending::Succeeded(result.clone()));
    let view = world.run(client.get(&id("a"))).unwrap().unwrap();
    assert_eq!(view.typed_result::<Sum>().unwrap(), 7);
    assert!(matches!(view.typed_result::<Other>(), Err(ResultError::Kind { .. })));
    assert_eq!(view.typed_result::<crate::client::Untyped>().unwrap().bytes(), b"7");
    assert_eq!(world.run(client.decode_payload(&view)).unwrap().unwrap().bytes(), b"\"x\"");
    let views = world.run(client.get_many(&[id("a"), id("none")])).unwrap();
    assert_eq!(views[0].as_ref().unwrap().typed_result::<Sum>().unwrap(), 7);
    assert_eq!(views[1], None);

    let encoded = world.run(plain.get(&id("a"))).unwrap().unwrap();
    assert_eq!(encoded.result, Some(result.clone()));
    assert!(matches!(encoded.typed_result::<Sum>(), Err(ResultError::Encoded(_))));
    assert_eq!(encoded.typed_result::<crate::client::Untyped>().unwrap(), result);
    assert_eq!(world.run(plain.decode_payload(&encoded)).unwrap(), encoded.payload);
    let lost = world.client_with(self::codec(2, false));
    let error = world.run(lost.get(&id("a"))).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Unreadable);

    world.tree().update(&path::record(&id("a")), |record: JobRecord| {
        let mut record = record;
        let result = Payload::json(*b"\"text\"").unwrap();
        if let bellwether_core::job::JobState::Terminal { verdict, .. } = &mut record.state {
            *verdict = bellwether_core::job::Verdict::Succeeded(result);
        }
        record
    });
    let view = world.run(plain.get(&id("a"))).unwrap().unwrap();
    assert!(matches!(view.typed_result::<Sum>(), Err(ResultError::Type { .. })));
    world.tree().update(&path::record(&id("a")), |record: JobRecord| record.reopen());
    let view = world.run(plain.get(&id("a"))).unwrap().unwrap();
    assert!(matches!(view.typed_result::<Sum>(), Err(ResultError::NoResult(_))));
}

#[test]
fn a_replacement_of_another_kind_is_encoded_again() {
    let (world, client) = stage();
    let add = |schedule: Schedule| world.run(client.schedules().add(&schedule));
    let stored = || {
        let record: bellwether_core::schedule::ScheduleRecord = world.tree().decoded("/schedules/s");
        record.spec.template.payload
    };
    add(schedule("x")).unwrap();
    let first = stored();
    let other_kind = Schedule::every("s", Duration::from_secs(60), Job::new("product", "x")).replace(true);
    assert_eq!(add(other_kind), Ok(Added::Replaced));
    assert_ne!(stored(), first, "the codec binds a payload to its kind");
}

#[test]
fn a_payload_of_a_schedule_that_was_stored_without_a_codec_is_not_decoded() {
    let world = World::new();
    let client = world.client_with(codec(1, true));
    world.run(world.client().schedules().add(&schedule("x"))).unwrap();
    let conflict = world.run(client.schedules().add(&schedule("x"))).unwrap_err();
    assert!(matches!(conflict, ScheduleError::Conflict { differs: "payload", .. }), "{conflict:?}");
}

#[test]
fn results_of_members_are_decoded_and_one_that_cannot_be_is_an_end_of_its_own() {
    let (world, client) = stage();
    let group = world.run(client.group(crate::Group::new("sum", "g").total(1))).unwrap();
    let member = world.run(group.submit(0, Job::new("sum", "x"))).unwrap().id().clone();
    let worker = world.worker(1, &World::registration(&["sum"], 1, &[]));
    let context =
        CodecContext::new(Part::Result, bellwether_core::name::Kind::new("sum").unwrap(), member.clone());
    let result = codec(1, false).unwrap();
    let result = world.run(result.encode(&Payload::json(*b"7").unwrap(), &context)).unwrap();
    world.assign(&member, worker);
    world.close(&member, worker, bellwether_core::job::Ending::Succeeded(result));
    let first = |client: &Client| world.run(client.group_members::<Sum>(group.id()).next());
    assert_eq!(first(&client).unwrap().unwrap().into_result(), Ok(7));
    let lost = first(&world.client_with(codec(2, false))).unwrap().unwrap();
    assert!(matches!(&lost.end, MemberEnd::Undecodable(error) if error.contains("another key")), "{lost:?}");
    let later = first(&world.client_with(codec(2, true))).unwrap_err();
    assert_eq!(later.class(), ErrorClass::Unavailable);
    let plain = first(&world.client()).unwrap().unwrap();
    assert!(matches!(&plain.end, MemberEnd::Undecodable(error) if error.contains("no codec")), "{plain:?}");
}

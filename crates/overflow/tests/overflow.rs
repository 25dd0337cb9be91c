//! Large payloads and results in a directory, with a real server.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bellwether::client::{Accepted, IfExists, SubmitError};
use bellwether::codec::Part;
use bellwether::testing::Cluster;
use bellwether::{
    Client, CodecContext, CodecError, Handlers, Job, JobHandle, JobId, JobKind, Kind, PayloadCodec, Remedy,
    State,
};
use bellwether_overflow::object_store::local::LocalFileSystem;
use bellwether_overflow::{INLINE_BYTES, MIN_AGE, OverflowCodec, SweepError};
use bellwether_testkit::{Cut, Proxy, Request, eventually, op};
use tempfile::TempDir;

const SOON: Duration = Duration::from_secs(30);
const MIB: usize = 1024 * 1024;

/// Returns its payload.
struct Echo;

impl JobKind for Echo {
    const NAME: &'static str = "echo";
    type Payload = String;
    type Result = String;
}

fn handlers() -> Handlers {
    Handlers::new().kind::<Echo>(|_, text| async move { Ok(text) })
}

fn large(first: char) -> String {
    first.to_string() + &"x".repeat(MIB)
}

fn echo(id: &str, text: &str) -> Job<Echo> {
    Echo::job(&text.to_owned()).id(id)
}

fn id(id: &str) -> JobId {
    JobId::new(id).unwrap()
}

struct Stage {
    cluster: Cluster,
    client: Client,
    codec: OverflowCodec,
    dir: TempDir,
}

impl Stage {
    async fn with_nodes(nodes: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("store")).unwrap();
        let store = LocalFileSystem::new_with_prefix(dir.path().join("store")).unwrap().with_fsync(true);
        let codec = OverflowCodec::new(Arc::new(store), "prod/jobs").unwrap();
        let of_nodes = codec.clone();
        let cluster = Cluster::builder(handlers()).nodes(nodes);
        let cluster = cluster.configure(move |_, node| node.payload_codec(of_nodes.clone()));
        let cluster = cluster.start().await.unwrap();
        let client = Client::builder(cluster.zookeeper()).payload_codec(codec.clone()).deadline(SOON);
        let client = client.connect().await.unwrap();
        Self { cluster, client, codec, dir }
    }

    /// Returns the objects of a job.
    fn objects(&self, job: &str) -> Vec<PathBuf> {
        let dir = self.dir.path().join("store/prod/jobs").join(job);
        let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    fn only_object(&self, job: &str) -> PathBuf {
        let objects = self.objects(job);
        assert_eq!(objects.len(), 1, "{objects:?}");
        objects[0].clone()
    }
}

fn make_old(object: &Path) {
    let then = SystemTime::now() - 2 * MIN_AGE;
    File::options().write(true).open(object).unwrap().set_modified(then).unwrap();
}

#[tokio::test]
async fn a_payload_and_a_result_of_a_mebibyte_are_objects_and_the_record_refers_to_them() {
    let stage = Stage::with_nodes(1).await;
    let text = large('a');
    let job = stage.client.submit(echo("a", &text)).await.unwrap();
    assert_eq!(job.result(SOON).await.unwrap(), text);
    assert_eq!(stage.objects("a").len(), 2);
    let stored = stage.cluster.client().get(&id("a")).await.unwrap().unwrap();
    for reference in [stored.payload.unwrap(), stored.result.unwrap()] {
        assert_eq!(reference.bytes().len(), 57, "a reference");
    }

    let small = "x".repeat(INLINE_BYTES - 100);
    let job = stage.client.submit(echo("b", &small)).await.unwrap();
    assert_eq!(job.result(SOON).await.unwrap(), small);
    assert!(stage.objects("b").is_empty());
    stage.cluster.stop().await.unwrap();
}

/// S11
#[tokio::test]
async fn a_repeated_submission_of_a_large_payload_is_the_same_job() {
    let stage = Stage::with_nodes(1).await;
    let accepted = async |job| stage.client.submit(job).await.map(|job: JobHandle<Echo>| job.accepted());
    assert_eq!(accepted(echo("a", &large('a'))).await, Ok(Accepted::New));
    assert_eq!(accepted(echo("a", &large('a'))).await, Ok(Accepted::Same));
    let conflict = accepted(echo("a", &large('b'))).await.unwrap_err();
    assert!(matches!(conflict, SubmitError::Conflict { same_kind: true, .. }), "{conflict}");
    stage.client.wait(&id("a"), SOON).await.unwrap();
    let again = echo("a", &large('a')).if_exists(IfExists::Again);
    let again = stage.client.submit(again).await.unwrap();
    assert_eq!(again.accepted(), Accepted::Again(2));
    assert_eq!(again.result(SOON).await.unwrap(), large('a'));
    stage.cluster.stop().await.unwrap();
}

/// S1, S11
#[tokio::test]
async fn a_large_submission_with_a_lost_reply_is_accepted_once() {
    let stage = Stage::with_nodes(1).await;
    let proxy = Proxy::to(&stage.cluster.zookeeper());
    let client = Client::builder(proxy.connect_string()).payload_codec(stage.codec.clone()).deadline(SOON);
    let client = client.connect().await.unwrap();
    let lost = |request: &Request<'_>| request.op == op::MULTI && request.mentions("lost");
    let fault = proxy.swallow_reply_and_cut(lost, Cut::Reset);
    let job = client.submit(echo("lost", &large('a'))).await.unwrap();
    fault.fired().await;
    assert_eq!(job.accepted(), Accepted::New);
    assert_eq!(client.submit(echo("lost", &large('a'))).await.unwrap().accepted(), Accepted::Same);
    assert_eq!(job.result(SOON).await.unwrap(), large('a'));
    stage.cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_changed_object_ends_its_job_without_running_the_handler() {
    let mut stage = Stage::with_nodes(0).await;
    for (job, change) in [("flipped", 0), ("cut", -1), ("longer", 1)] {
        stage.client.submit(echo(job, &large('a')).max_attempts(5)).await.unwrap();
        let object = stage.only_object(job);
        let mut bytes = fs::read(&object).unwrap();
        match change {
            0 => bytes[MIB / 2] ^= 1,
            1 => bytes.push(b'x'),
            _ => bytes.truncate(MIB),
        }
        fs::write(&object, bytes).unwrap();
    }
    stage.cluster.add().await.unwrap();
    for job in ["flipped", "cut", "longer"] {
        let end = stage.client.wait(&id(job), SOON).await.unwrap();
        assert_eq!((end.state, end.attempt), (State::Dead, 1), "{job}");
        let why = end.error.unwrap();
        assert!(why.contains("was changed"), "{why}");
    }
    stage.cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_missing_store_delays_jobs_and_refuses_submissions_until_it_is_back() {
    let mut stage = Stage::with_nodes(0).await;
    let job = echo("a", &large('a')).max_attempts(1_000);
    let short = Duration::from_millis(50);
    let job = stage.client.submit(job.backoff(short, short)).await.unwrap();
    let (here, away) = (stage.dir.path().join("store"), stage.dir.path().join("away"));
    fs::rename(&here, &away).unwrap();
    stage.cluster.add().await.unwrap();
    let cautious = stage.cluster.client().clone();
    let failed_with = async |why: &str| {
        eventually(why, SOON, async || {
            let view = cautious.get(job.id()).await.unwrap().unwrap();
            assert!(!view.state.is_terminal(), "{view:?}");
            view.error.is_some_and(|error| {
                error.contains("cannot be decoded: object prod/jobs/a/") && error.contains(why)
            })
        })
        .await;
    };
    failed_with("is not in the store").await;
    // Nothing can be written below a file.
    fs::write(&here, b"not mounted").unwrap();
    failed_with("cannot be read").await;
    let refused = stage.client.submit(echo("b", &large('a'))).await.map(drop).unwrap_err();
    assert!(matches!(&refused, SubmitError::Encode { .. }) && refused.is_retryable(), "{refused}");
    // Small payloads need no store.
    let small = stage.client.submit(echo("c", "small")).await.unwrap();
    assert_eq!(small.result(SOON).await.unwrap(), "small");
    fs::remove_file(&here).unwrap();
    fs::rename(&away, &here).unwrap();
    assert_eq!(job.result(SOON).await.unwrap(), large('a'));
    stage.cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_sweep_removes_old_objects_of_jobs_without_a_record_and_no_others() {
    let mut stage = Stage::with_nodes(0).await;
    stage.client.submit(echo("open", &large('a'))).await.unwrap();
    make_old(&stage.only_object("open"));
    // Submissions that failed after their objects were written.
    let context = |job: &str| CodecContext::new(Part::Payload, Kind::new("echo").unwrap(), id(job));
    for job in ["old", "young", "sum:g:7"] {
        stage.codec.encode(vec![b'x'; MIB], &context(job)).await.unwrap();
    }
    make_old(&stage.only_object("old"));
    make_old(&stage.only_object("sum:g:7"));
    let foreign = stage.dir.path().join("store/prod/jobs/notes.txt");
    fs::write(&foreign, b"x").unwrap();
    make_old(&foreign);
    // The prefix of another namespace.
    let other = stage.dir.path().join("store/prod/jobs-of-others");
    fs::create_dir(&other).unwrap();

    let refused = stage.codec.sweep(&stage.client, MIN_AGE - Duration::from_secs(1)).await.unwrap_err();
    assert!(matches!(refused, SweepError::Age(_)), "{refused}");
    assert_eq!((refused.remedy(), refused.is_retryable()), (Remedy::FixInput, false));
    let swept = stage.codec.sweep(&stage.client, MIN_AGE).await.unwrap();
    assert_eq!((swept.removed, swept.in_use, swept.too_recent, swept.foreign), (2, 1, 1, 1));
    let left = ["open", "old", "young", "sum:g:7"].map(|job| stage.objects(job).len());
    assert_eq!(left, [1, 0, 1, 0]);
    assert!(foreign.exists() && other.exists());

    // The open job still runs, and an ended job keeps its objects as long as its record.
    stage.cluster.add().await.unwrap();
    assert_eq!(stage.client.wait(&id("open"), SOON).await.unwrap().state, State::Succeeded);
    stage.objects("open").iter().for_each(|object| make_old(object));
    let swept = stage.codec.sweep(&stage.client, MIN_AGE).await.unwrap();
    assert_eq!((swept.removed, swept.in_use), (0, 2));
    assert_eq!(stage.client.get(&id("open")).await.unwrap().unwrap().result.unwrap().bytes().len(), MIB + 3);
    stage.cluster.stop().await.unwrap();
}

/// Each submission writes its own object, so a sweep cannot remove one that a later submission refers to.
#[tokio::test]
async fn a_submission_does_not_refer_to_an_object_that_an_earlier_one_left() {
    let stage = Stage::with_nodes(1).await;
    let context = CodecContext::new(Part::Payload, Kind::new("echo").unwrap(), id("a"));
    stage.codec.encode(vec![b'x'; MIB], &context).await.unwrap();
    let left = stage.only_object("a");
    make_old(&left);
    let job = stage.client.submit(echo("a", &large('a'))).await.unwrap();
    fs::remove_file(&left).unwrap();
    assert_eq!(job.result(SOON).await.unwrap(), large('a'));
    stage.cluster.stop().await.unwrap();
}

/// Inverts all bits, in place of a cipher.
#[derive(Clone)]
struct Invert;

impl PayloadCodec for Invert {
    async fn encode(&self, plain: Vec<u8>, _: &CodecContext) -> Result<Vec<u8>, CodecError> {
        Ok(plain.into_iter().map(|byte| !byte).collect())
    }

    async fn decode(&self, encoded: Vec<u8>, _: &CodecContext) -> Result<Vec<u8>, CodecError> {
        Ok(encoded.into_iter().map(|byte| !byte).collect())
    }
}

#[tokio::test]
async fn a_cipher_inside_of_the_codec_hides_the_bytes_from_the_store() {
    let stage = Stage::with_nodes(0).await;
    let chain = Invert.then(stage.codec.clone());
    let client =
        Client::builder(stage.cluster.zookeeper()).payload_codec(chain.clone()).connect().await.unwrap();
    let node = bellwether::Node::builder(stage.cluster.zookeeper()).handlers(handlers()).payload_codec(chain);
    let node = node.start().await.unwrap();
    let job = client.submit(echo("a", &large('a'))).await.unwrap();
    assert_eq!(job.result(SOON).await.unwrap(), large('a'));
    for object in stage.objects("a") {
        assert!(!fs::read(object).unwrap().contains(&b'x'));
    }
    node.stop().await;
    stage.cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_payload_over_the_bound_and_a_large_payload_of_a_schedule_are_refused() {
    let stage = Stage::with_nodes(0).await;
    let context = |job: Option<JobId>| CodecContext::new(Part::Payload, Kind::new("echo").unwrap(), job);
    let over = vec![0; bellwether_overflow::MAX_OBJECT_BYTES + 1];
    let refused = stage.codec.encode(over, &context(Some(id("a")))).await.unwrap_err();
    assert!(!refused.is_retryable() && refused.to_string().contains("at most 16842752"), "{refused}");
    let refused = stage.codec.encode(vec![0; MIB], &context(None)).await.unwrap_err();
    assert!(!refused.is_retryable() && refused.to_string().contains("at most 49152"), "{refused}");
    assert!(stage.objects("a").is_empty());
    stage.cluster.stop().await.unwrap();
}

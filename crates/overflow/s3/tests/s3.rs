//! Large payloads and results in a store that speaks S3's protocol, with a real server. `run.py` starts the store and creates the
//! bucket.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bellwether::client::SubmitError;
use bellwether::codec::Part;
use bellwether::testing::Cluster;
use bellwether::{Client, CodecContext, Handlers, JobId, JobKind, Kind, PayloadCodec, State};
use bellwether_overflow::{MIN_AGE, OverflowCodec};
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt as _, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

const SOON: Duration = Duration::from_secs(30);

/// More than a znode may have.
const LARGE: usize = 1024 * 1024 + 1;

/// Returns its payload.
#[derive(Debug)]
struct Echo;

impl JobKind for Echo {
    const NAME: &'static str = "echo";
    type Payload = String;
    type Result = String;
}

fn s3() -> AmazonS3 {
    AmazonS3Builder::from_env().with_allow_http(true).build().expect("the variables that run.py sets")
}

async fn objects(store: &AmazonS3, prefix: &str) -> Vec<Path> {
    let found = store.list(Some(&Path::from(prefix)));
    found.map_ok(|object| object.location).try_collect().await.unwrap()
}

struct Stage {
    cluster: Cluster,
    client: Client,
}

impl Stage {
    async fn with_nodes(nodes: usize, codec: &OverflowCodec) -> Self {
        let of_nodes = codec.clone();
        let cluster = Cluster::builder(Handlers::new().kind::<Echo>(|_, text| async move { Ok(text) }));
        let cluster = cluster.nodes(nodes).configure(move |_, node| node.payload_codec(of_nodes.clone()));
        let cluster = cluster.start().await.unwrap();
        let client = Client::builder(cluster.zookeeper()).payload_codec(codec.clone()).deadline(SOON);
        Self { client: client.connect().await.unwrap(), cluster }
    }
}

#[tokio::test]
async fn a_payload_and_a_result_of_a_mebibyte_are_objects_of_the_bucket() {
    let store = s3();
    let codec = OverflowCodec::new(Arc::new(store.clone()), "run").unwrap();
    let stage = Stage::with_nodes(1, &codec).await;
    let text = "x".repeat(LARGE);
    let job = stage.client.submit(Echo::job(&text).id("a")).await.unwrap();
    assert_eq!(job.result(SOON).await.unwrap(), text);
    assert_eq!(objects(&store, "run/a").await.len(), 2);
    stage.cluster.stop().await.unwrap();
}

/// In a signature, a colon and an at sign have another form than in the path of the request.
#[tokio::test]
async fn the_objects_of_members_of_groups_and_of_schedules_are_written_read_and_listed() {
    let store = s3();
    let codec = OverflowCodec::new(Arc::new(store.clone()), "signed").unwrap();
    for id in ["sum:g:7", "daily@2026-11-26T02:00:00Z"] {
        let context = CodecContext::new(Part::Payload, Kind::new("echo").unwrap(), JobId::new(id).unwrap());
        let stored = codec.encode(vec![b'x'; LARGE], &context).await.unwrap();
        assert_eq!(codec.decode(stored, &context).await.unwrap(), vec![b'x'; LARGE], "{id}");
        assert_eq!(objects(&store, &format!("signed/{id}")).await.len(), 1);
    }
}

#[tokio::test]
async fn a_changed_object_ends_its_job_and_an_absent_one_is_tried_again() {
    let store = s3();
    let codec = OverflowCodec::new(Arc::new(store.clone()), "changed").unwrap();
    let mut stage = Stage::with_nodes(0, &codec).await;
    let short = Duration::from_millis(50);
    for (id, change) in [("changed", true), ("absent", false)] {
        let job = Echo::job(&"x".repeat(LARGE)).id(id).max_attempts(2).backoff(short, short);
        stage.client.submit(job).await.unwrap();
        let object = objects(&store, &format!("changed/{id}")).await.remove(0);
        if change {
            store.put(&object, PutPayload::from(vec![b'y'; LARGE])).await.unwrap();
        } else {
            store.delete(&object).await.unwrap();
        }
    }
    stage.cluster.add().await.unwrap();
    for (id, attempts, error) in [("changed", 1, "was changed"), ("absent", 2, "is not in the store")] {
        let end = stage.client.wait(&JobId::new(id).unwrap(), SOON).await.unwrap();
        assert_eq!((end.state, end.attempt), (State::Dead, attempts), "{id}: {:?}", end.error);
        let said = end.error.unwrap();
        assert!(said.contains(error), "{said}");
    }
    stage.cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_sweep_removes_the_objects_of_jobs_without_a_record() {
    let store = s3();
    let aged = OverflowCodec::new(Arc::new(Aged(store.clone())), "swept").unwrap();
    let stage = Stage::with_nodes(1, &aged).await;
    let job = stage.client.submit(Echo::job(&"x".repeat(LARGE)).id("kept")).await.unwrap();
    job.result(SOON).await.unwrap();
    // More than one page of a list, which has 1,000 objects.
    let left = (0..1_100).map(|n| format!("swept/gone-{}/{n:08}-0000-0000-0000-000000000000", n % 300));
    let put = |path: String| {
        let store = &store;
        async move { store.put(&Path::from(path), PutPayload::from("x")).await.map(drop) }
    };
    futures::stream::iter(left).map(put).buffer_unordered(8).try_collect::<Vec<()>>().await.unwrap();
    let swept = aged.sweep(&stage.client, MIN_AGE).await.unwrap();
    assert_eq!((swept.removed, swept.in_use, swept.too_recent, swept.foreign), (1_100, 2, 0, 0));
    let again = aged.sweep(&stage.client, MIN_AGE).await.unwrap();
    assert_eq!((again.removed, again.in_use), (0, 2));
    let young = OverflowCodec::new(Arc::new(store), "swept").unwrap();
    assert_eq!(young.sweep(&stage.client, MIN_AGE).await.unwrap().too_recent, 2);
    stage.cluster.stop().await.unwrap();
}

#[tokio::test]
async fn a_store_that_is_not_reachable_is_a_retryable_error() {
    let store = AmazonS3Builder::from_env().with_allow_http(true).with_endpoint("http://127.0.0.1:9");
    let store = store.with_retry(object_store::RetryConfig { max_retries: 0, ..Default::default() });
    let codec = OverflowCodec::new(Arc::new(store.build().unwrap()), "nowhere").unwrap();
    let stage = Stage::with_nodes(0, &codec).await;
    let refused = stage.client.submit(Echo::job(&"x".repeat(LARGE)).id("a")).await.unwrap_err();
    assert!(matches!(&refused, SubmitError::Encode { .. }) && refused.is_retryable(), "{refused:?}");
    assert!(stage.client.get(&JobId::new("a").unwrap()).await.unwrap().is_none());
    stage.cluster.stop().await.unwrap();
}

/// A store whose objects were written two hours ago.
#[derive(Debug)]
struct Aged(AmazonS3);

impl fmt::Display for Aged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for Aged {
    async fn put_opts(&self, to: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.0.put_opts(to, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        to: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.0.put_multipart_opts(to, options).await
    }

    async fn get_opts(&self, from: &Path, options: GetOptions) -> Result<GetResult> {
        self.0.get_opts(from, options).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.0.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let aged =
            |object: ObjectMeta| ObjectMeta { last_modified: object.last_modified - 2 * MIN_AGE, ..object };
        self.0.list(prefix).map_ok(aged).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.0.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.0.copy_opts(from, to, options).await
    }
}

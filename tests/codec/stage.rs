//! Clusters and clients with keys, and the stored records.

use std::time::Duration;

use bellwether::testing::{Cluster, ClusterBuilder};
use bellwether::{Client, Handlers, JobId, JobKind, PayloadCodec};
use bellwether_core::job::JobRecord;
use bellwether_core::outcome::Outcome;
use bellwether_core::txn::Op;
use bellwether_core::{path, wire};
use bellwether_zk::{Zk, connect};

use crate::cipher::Keys;

pub(crate) const SOON: Duration = Duration::from_secs(30);

/// Repeats a text in upper case.
#[derive(Debug)]
pub(crate) struct Shout;

impl JobKind for Shout {
    const NAME: &'static str = "shout";
    type Payload = String;
    type Result = String;
}

pub(crate) fn shouting() -> Handlers {
    Handlers::new().kind::<Shout>(|_, text| async move { Ok(text.to_uppercase()) })
}

pub(crate) fn keys() -> Keys {
    Keys::new(1, [1; 32])
}

/// Returns a builder for a cluster whose nodes have these keys.
pub(crate) fn with_keys(handlers: Handlers, keys: Keys) -> ClusterBuilder {
    Cluster::builder(handlers).configure(move |_, node| node.payload_codec(keys.clone()))
}

pub(crate) async fn cluster(handlers: Handlers) -> Cluster {
    with_keys(handlers, keys()).start().await.unwrap()
}

pub(crate) async fn client(cluster: &Cluster, codec: impl PayloadCodec) -> Client {
    Client::builder(cluster.zookeeper()).payload_codec(codec).deadline(SOON).connect().await.unwrap()
}

pub(crate) fn id(id: &str) -> JobId {
    JobId::new(id).unwrap()
}

/// Reads and writes records without a codec.
pub(crate) struct Records(Zk);

impl Records {
    pub(crate) async fn of(cluster: &Cluster) -> Self {
        Self(connect(&cluster.zookeeper().parse().unwrap(), SOON).await.unwrap())
    }

    pub(crate) async fn read(&self, job: &str) -> JobRecord {
        let node = self.0.get(path::record(&id(job))).await.unwrap().expect("the record exists");
        wire::decode(&node.data).unwrap()
    }

    pub(crate) async fn change(&self, job: &str, change: impl FnOnce(&mut JobRecord)) {
        let path = path::record(&id(job));
        let node = self.0.get(path.clone()).await.unwrap().expect("the record exists");
        let mut record = wire::decode(&node.data).unwrap();
        change(&mut record);
        let set = Op::Set { path, data: wire::encode(&record), version: node.version };
        assert_eq!(self.0.commit(vec![set]).await, Outcome::Applied(()));
    }
}

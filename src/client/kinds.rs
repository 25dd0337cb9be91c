//! Kinds: who serves them, and pausing them.
//!
//! A kind is paused by a znode of its name, made and removed by itself. **What if the reply is lost?** The znode is read:
//! it is there, or it is not, and that is what was wanted, whoever did it.
//!
//! A pause is a wish to the leader, which hears of it by a watch: an assignment that it has sent by then stands. Attempts
//! under way go on, and jobs may be submitted. A new leader assigns nothing before it knows what is paused.

use std::collections::BTreeMap;

use bellwether_core::budget::{MAX_BY_BYTES, MAX_READ_BATCH};
use bellwether_core::name::{Kind, WorkerId};
use bellwether_core::path;
use bellwether_core::time::WallMillis;
use bellwether_core::txn;
use bellwether_core::wire;
use bellwether_core::worker::PauseRecord;
use bellwether_zk::ReadResult;
use futures::future::try_join_all;

use super::Client;
use super::cluster::{WorkerView, workers};
use super::error::Error;
use super::link::Written;
use super::runtime::Zk;

/// How often a pause that comes and goes under our hands is tried.
const TRIES: u32 = 16;

/// A kind that a worker serves, or that is paused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindView {
    /// Its name.
    pub kind: Kind,
    /// The live workers that have a handler for it.
    pub workers: Vec<WorkerId>,
    /// The slots that they have, for all their kinds together, and how many of them hold a job.
    pub slots: (usize, usize),
    /// By whom and since when it is paused.
    pub paused: Option<Paused>,
}

/// A pause. What cannot be read of it is left out; it is a pause all the same.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Paused {
    /// Who did it, as they said.
    pub by: Option<String>,
    /// When, by their clock.
    pub since: Option<WallMillis>,
}

impl Client {
    /// Has the leader assign no job of this kind from now on, within moments: an assignment that is on its way stands, and
    /// what runs goes on. `by` tells people who did it, in at most 256 bytes. `false` when it was paused already: then the
    /// pause of before stands.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a long `by`, or no answer within the client's deadline: then it may or may not be paused, and
    /// pausing again is safe.
    pub async fn pause_kind(&self, kind: &Kind, by: &str) -> Result<bool, Error> {
        if by.len() > MAX_BY_BYTES {
            let (allowed, given) = (format!("at most {MAX_BY_BYTES} bytes"), format!("{} bytes", by.len()));
            return Err(Error::Invalid { field: "by", allowed, given });
        }
        let pause = PauseRecord { by: by.to_owned(), since: self.0.link.wall() };
        let ours = wire::encode(&pause);
        self.change_pause(kind, vec![txn::pause(kind, &pause)], |there, unknown| {
            // Not by its version: a pause that was lifted and made again by another is theirs.
            there.map(|data| unknown && *data == ours)
        })
        .await
    }

    /// Has the leader assign jobs of this kind again. `false` when it was not paused.
    ///
    /// # Errors
    /// No answer within the client's deadline: then it may or may not be paused still, and resuming again is safe.
    pub async fn resume_kind(&self, kind: &Kind) -> Result<bool, Error> {
        let done = |there: Option<&Vec<u8>>, unknown| there.is_none().then_some(unknown);
        self.change_pause(kind, vec![txn::unpause(kind)], done).await
    }

    /// Commits until it is applied, or what is there says that it need not be: `done` then tells whether this call did it.
    async fn change_pause(
        &self,
        kind: &Kind,
        ops: Vec<txn::Op>,
        done: impl Fn(Option<&Vec<u8>>, bool) -> Option<bool>,
    ) -> Result<bool, Error> {
        let by = self.by();
        let mut unknown = false;
        for _ in 0..TRIES {
            match self.0.link.commit(by, ops.clone()).await? {
                Written::Applied => return Ok(true),
                Written::Lost => {}
                Written::Unknown => unknown = true,
            }
            let there = self.0.link.read(by, |zk| zk.get(path::pause(kind))).await?;
            if let Some(ours) = done(there.as_ref().map(|node| &node.data), unknown) {
                return Ok(ours);
            }
        }
        Err(Error::PauseContended(kind.clone()))
    }

    /// The kinds that live workers serve, and those that are paused, by name.
    ///
    /// # Errors
    /// When ZooKeeper does not answer within the client's deadline.
    pub async fn kinds(&self) -> Result<Vec<KindView>, Error> {
        let read = |zk: &Zk| {
            let (zk, now) = (zk.clone(), self.0.link.wall());
            async move { futures::try_join!(workers(zk.clone(), now), pauses(zk)) }
        };
        let (workers, paused) = self.0.link.read(self.by(), read).await?;
        Ok(served(&workers, &paused))
    }
}

/// The kinds that these workers serve, and those that are paused, by name.
pub(super) fn served(workers: &[WorkerView], paused: &BTreeMap<Kind, Paused>) -> Vec<KindView> {
    let unserved = |kind: &Kind| KindView {
        kind: kind.clone(),
        workers: Vec::new(),
        slots: (0, 0),
        paused: paused.get(kind).cloned(),
    };
    let mut kinds = paused.keys().map(|kind| (kind.clone(), unserved(kind))).collect::<BTreeMap<_, _>>();
    for worker in workers {
        let Ok(info) = &worker.info else { continue };
        for kind in &info.kinds {
            let view = kinds.entry(kind.clone()).or_insert_with(|| unserved(kind));
            view.workers.push(worker.id);
            view.slots.0 += info.slots as usize;
            view.slots.1 += worker.assigned;
        }
    }
    kinds.into_values().collect()
}

/// What is paused. A name that is no kind pauses nothing.
pub(super) async fn pauses(zk: Zk) -> ReadResult<BTreeMap<Kind, Paused>> {
    let names = zk.children(path::PAUSES.to_owned()).await?.unwrap_or_default();
    let kinds = names.iter().filter_map(|name| Kind::new(name).ok()).collect::<Vec<_>>();
    let reads =
        kinds.chunks(MAX_READ_BATCH).map(|kinds| zk.get_many(kinds.iter().map(path::pause).collect()));
    let nodes = try_join_all(reads).await?.into_iter().flatten().collect::<Vec<_>>();
    let paused = kinds.into_iter().zip(nodes).filter_map(|(kind, node)| {
        let paused = match wire::decode::<PauseRecord>(&node?.data) {
            Ok(pause) => Paused { by: Some(pause.by), since: Some(pause.since) },
            Err(_) => Paused::default(),
        };
        Some((kind, paused))
    });
    Ok(paused.collect())
}

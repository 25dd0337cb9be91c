//! Kinds: which workers serve them, and pausing them.
//!
//! A kind is paused by a znode with its name. **What if the reply is lost?** The znode is read: if it has the
//! requested state, the call is done, whichever client wrote it.
//!
//! The leader learns of a pause through a watch: an assignment that it has already sent stands. Running attempts
//! continue, and jobs may be submitted. A new leader assigns nothing before it has read the pauses.

use std::collections::BTreeMap;
use std::time::SystemTime;

use bellwether_core::budget::{MAX_NOTE_BYTES, MAX_READ_BATCH};
use bellwether_core::change::{ChangeKind, Note};
use bellwether_core::name::{Kind, WorkerId};
use bellwether_core::path;
use bellwether_core::txn;
use bellwether_core::wire;
use bellwether_core::worker::PauseRecord;
use bellwether_zk::ReadResult;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::future::try_join_all;

use super::Client;
use super::cluster::{Registered, workers};
use super::error::{Error, Subject};
use super::runtime::Zk;
use super::session::Written;

/// Limit of attempts for a pause that other clients change concurrently.
const TRIES: u32 = 16;

/// A kind that live workers serve, or that is paused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KindView {
    /// Its name.
    pub kind: Kind,
    /// The live workers that have a handler for it.
    pub workers: Vec<WorkerId>,
    /// The workers among them on which an operator has paused the kind.
    pub paused_on: Vec<WorkerId>,
    /// The slots of the other workers, for all their kinds together.
    pub slots: usize,
    /// How many of these slots hold a job.
    pub assigned: usize,
    /// The pause, if the kind is paused.
    pub paused: Option<Paused>,
}

/// A pause. Fields that cannot be read are `None`; the kind is paused nevertheless.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Paused {
    /// The author, if the client named one.
    pub by: Option<String>,
    /// The note of the author, if it gave one.
    pub note: Option<String>,
    /// When it was paused, by that client's clock.
    pub since: Option<SystemTime>,
}

impl Client {
    /// Pauses a kind: the leader stops assigning its jobs within moments. An assignment that is on its way stands,
    /// and running attempts continue. `note` is the reason for other operators: at most 256 bytes, or empty. Returns
    /// `false` if the kind was already paused; then the earlier pause and its note are kept.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a long `note`, or no answer within the client's deadline. Then the kind may or may not be
    /// paused, and pausing again is safe.
    pub fn pause_kind<'a>(&'a self, kind: &'a Kind, note: &'a str) -> BoxFuture<'a, Result<bool, Error>> {
        async move {
            let note = Note::new(note).map_err(|len| {
                let (allowed, given) = (format!("at most {MAX_NOTE_BYTES} bytes"), format!("{len} bytes"));
                Error::Invalid { field: "note", allowed, given }
            })?;
            let pause = PauseRecord { by: self.0.author.clone(), note, since: self.0.session.wall() };
            let ours = wire::encode(&pause);
            self.change_pause(kind, vec![txn::pause(kind, &pause)], |there, unknown| {
                // Not by version: a pause that another client lifted and made again is that client's.
                there.map(|data| unknown && *data == ours)
            })
            .await
        }
        .boxed()
    }

    /// Resumes a kind: the leader assigns its jobs again. Returns `false` if it was not paused.
    ///
    /// # Errors
    /// Fails without an answer within the client's deadline. Then the kind may or may not be paused, and resuming
    /// again is safe.
    pub fn resume_kind<'a>(&'a self, kind: &'a Kind) -> BoxFuture<'a, Result<bool, Error>> {
        async move {
            let done = |there: Option<&Vec<u8>>, unknown| there.is_none().then_some(unknown);
            let change = self.change(ChangeKind::Resumed);
            self.change_pause(kind, txn::unpause(kind, change.as_ref()), done).await
        }
        .boxed()
    }

    /// Commits until the change is applied or `done` finds that it is not needed. `done` returns whether this call
    /// did it.
    async fn change_pause(
        &self,
        kind: &Kind,
        ops: Vec<txn::Op>,
        done: impl Fn(Option<&Vec<u8>>, bool) -> Option<bool>,
    ) -> Result<bool, Error> {
        let by = self.by();
        let mut unknown = false;
        for _ in 0..TRIES {
            match self.0.session.commit(by, ops.clone()).await? {
                Written::Applied => return Ok(true),
                Written::Rejected => {}
                Written::Unknown => unknown = true,
            }
            let there = self.0.session.read(by, |zk| zk.get(path::pause(kind))).await?;
            if let Some(ours) = done(there.as_ref().map(|node| &node.data), unknown) {
                return Ok(ours);
            }
        }
        Err(Error::Contended { subject: Subject::Pause(kind.clone()), tries: TRIES })
    }

    /// Lists the kinds that live workers serve and those that are paused, by name.
    ///
    /// # Errors
    /// Fails if ZooKeeper does not answer within the client's deadline.
    pub fn kinds(&self) -> BoxFuture<'_, Result<Vec<KindView>, Error>> {
        async move {
            let read = |zk: &Zk| {
                let (zk, now) = (zk.clone(), self.0.session.wall());
                async move { futures::try_join!(workers(zk.clone(), now), pauses(zk)) }
            };
            let (workers, paused) = self.0.session.read(self.by(), read).await?;
            Ok(served(&workers, &paused))
        }
        .boxed()
    }
}

/// Returns the kinds that these workers serve and those that are paused, by name.
pub(super) fn served(workers: &[Registered], paused: &BTreeMap<Kind, Paused>) -> Vec<KindView> {
    let unserved = |kind: &Kind| KindView {
        kind: kind.clone(),
        workers: Vec::new(),
        paused_on: Vec::new(),
        slots: 0,
        assigned: 0,
        paused: paused.get(kind).cloned(),
    };
    let mut kinds = paused.keys().map(|kind| (kind.clone(), unserved(kind))).collect::<BTreeMap<_, _>>();
    for worker in workers {
        let Ok(info) = &worker.info else { continue };
        for kind in &info.kinds {
            let view = kinds.entry(kind.clone()).or_insert_with(|| unserved(kind));
            view.workers.push(worker.id);
            if !info.serves(kind) {
                view.paused_on.push(worker.id);
                continue;
            }
            view.slots += info.open_slots();
            view.assigned += worker.assigned;
        }
    }
    kinds.into_values().collect()
}

/// Reads all pauses. A name that is not a kind is ignored.
pub(super) async fn pauses(zk: Zk) -> ReadResult<BTreeMap<Kind, Paused>> {
    let names = zk.children(path::PAUSES.to_owned()).await?.unwrap_or_default();
    let kinds = names.iter().filter_map(|name| Kind::new(name).ok()).collect::<Vec<_>>();
    let reads =
        kinds.chunks(MAX_READ_BATCH).map(|kinds| zk.get_many(kinds.iter().map(path::pause).collect()));
    let nodes = try_join_all(reads).await?.into_iter().flatten().collect::<Vec<_>>();
    let paused = kinds.into_iter().zip(nodes).filter_map(|(kind, node)| {
        let paused = match wire::decode::<PauseRecord>(&node?.data) {
            Ok(PauseRecord { by, note, since }) => Paused {
                by: by.map(|by| by.to_string()),
                note: Some(note.as_str().to_owned()).filter(|note| !note.is_empty()),
                since: Some(since.into()),
            },
            Err(_) => Paused::default(),
        };
        Some((kind, paused))
    });
    Ok(paused.collect())
}

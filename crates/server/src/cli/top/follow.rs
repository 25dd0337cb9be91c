//! Takes snapshots repeatedly, also across lost connections.
//!
//! **Load on ZooKeeper**: there is one snapshot at a time. The pause after it is at least the interval and at least the
//! time that the snapshot took, so that a slow server gets fewer requests. A refresh by key shortens the interval but
//! not the second bound.

use std::sync::Arc;
use std::time::Duration;

use bellwether::Client;
use bellwether::client::{Error, Snapshot, SnapshotOptions, Unavailable};
use bellwether::error::ErrorClass;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::cli::Global;
use crate::cli::exit::{Failure, chain};

use super::SHORTEST;
use super::view::{Sort, View};

/// Delayed jobs are counted in at most this many minutes, most of a day: ten requests.
const MINUTES: usize = 1_000;

/// Limit for a snapshot; after it the page shows the error.
const PATIENCE: Duration = Duration::from_secs(3);

/// Session timeout of this command, which survives lost sessions.
const SESSION: Duration = Duration::from_secs(5);

/// Takes snapshots of a namespace.
pub(crate) struct Follower {
    pub(crate) client: Client,
    interval: Duration,
    turn: usize,
    /// When the next snapshot is due, and the earliest time of a requested refresh.
    due: Instant,
    earliest: Instant,
    impatient: Arc<Notify>,
    last: Option<Taken>,
    before: Option<Taken>,
}

/// A snapshot and the time at which it was complete.
struct Taken {
    at: Instant,
    snapshot: Snapshot,
}

/// Why there is no newer snapshot, as text for the page.
pub(crate) type Trouble = String;

impl Follower {
    /// Returns when the first snapshot has been taken.
    pub(crate) async fn start(global: &Global, interval: Duration) -> Result<Self, Failure> {
        let by = Instant::now() + global.deadline;
        let builder =
            Client::builder(global.zookeeper()?).access(global.access.access()?).session_timeout(SESSION);
        let builder = builder.create_namespace(false);
        let client = builder.deadline(global.deadline.min(PATIENCE)).open().await?;
        let now = Instant::now();
        let mut follower = Self {
            client,
            interval,
            turn: 0,
            due: now,
            earliest: now,
            impatient: Arc::default(),
            last: None,
            before: None,
        };
        loop {
            match timeout_at(by, follower.look()).await {
                Ok(Ok(())) => return Ok(follower),
                Ok(Err(error)) if is_for_good(&error) || Instant::now() >= by => return Err(error.into()),
                Ok(Err(_)) => {}
                Err(_) => {
                    let within = global.deadline;
                    let reason = "no snapshot came".to_owned();
                    return Err(Error::from(Unavailable::NotInTime { within, reason, served: true }).into());
                }
            }
        }
    }

    /// Returns the handle that requests a refresh without waiting for the interval.
    pub(crate) fn impatient(&self) -> Arc<Notify> {
        Arc::clone(&self.impatient)
    }

    /// Waits for the next refresh and takes a snapshot. A temporary error is returned as `Trouble`, a permanent one as
    /// a failure.
    pub(crate) async fn next(&mut self) -> Result<Result<(), Trouble>, Failure> {
        tokio::select! {
            () = sleep_until(self.due) => {}
            () = self.impatient.notified() => sleep_until(self.earliest).await,
        }
        match self.look().await {
            Ok(()) => Ok(Ok(())),
            Err(error) if is_for_good(&error) => Err(error.into()),
            Err(error) => Ok(Err(chain(&error))),
        }
    }

    async fn look(&mut self) -> Result<(), Error> {
        let began = Instant::now();
        let taken = self.client.snapshot(SnapshotOptions::default().minutes(MINUTES).sample(self.turn)).await;
        let at = Instant::now();
        self.turn = self.turn.wrapping_add(1);
        self.due = at + self.interval.max(at - began);
        self.earliest = at + SHORTEST.max(at - began);
        let now = Taken { at, snapshot: taken? };
        self.before = self.last.replace(now);
        Ok(())
    }

    /// Returns the last snapshot.
    pub(crate) fn snapshot(&self) -> Option<&Snapshot> {
        self.last.as_ref().map(|taken| &taken.snapshot)
    }

    /// Returns the last view and its time.
    pub(crate) fn view(&self, sort: Sort) -> Option<(View, Instant)> {
        let now = self.last.as_ref()?;
        let before = self.before.as_ref().map(|before| (&before.snapshot, now.at - before.at));
        Some((View::new(before, &now.snapshot, sort), now.at))
    }
}

/// Whether the client has ended, so that a retry is useless.
fn is_for_good(error: &Error) -> bool {
    error.class() == ErrorClass::Closed
}

//! Asks again and again, whatever happens to the connection.
//!
//! **How much that loads ZooKeeper**: one snapshot at a time, and a rest after each that is as long as the interval and at
//! least as long as the snapshot took, so that a slow server is asked less often. Who does not want to wait for the
//! interval waits for the rest of it all the same.

use std::sync::Arc;
use std::time::Duration;

use bellwether::Client;
use bellwether::client::{Error, Look, Snapshot, Unavailable};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::cli::Global;
use crate::cli::exit::{Failure, chain};

use super::SHORTEST;
use super::view::{Sort, View};

/// Delayed jobs are counted in the minutes of most of a day: ten requests.
const MINUTES: usize = 1_000;

/// How long a snapshot may take before somebody who looks is told that there is none.
const PATIENCE: Duration = Duration::from_secs(3);

/// Sessions of this command, which outlives what ails them.
const SESSION: Duration = Duration::from_secs(5);

/// A namespace, looked at now and then.
pub(crate) struct Follower {
    pub(crate) client: Client,
    interval: Duration,
    turn: usize,
    /// When the next look is due, and from when on somebody may have it earlier.
    due: Instant,
    earliest: Instant,
    impatient: Arc<Notify>,
    last: Option<Taken>,
    before: Option<Taken>,
}

/// A snapshot, and when it was there.
struct Taken {
    at: Instant,
    snapshot: Snapshot,
}

/// Why there is no newer snapshot, for people.
pub(crate) type Trouble = String;

impl Follower {
    /// Returns when the first snapshot is there.
    pub(crate) async fn start(global: &Global, interval: Duration) -> Result<Self, Failure> {
        let by = Instant::now() + global.timeout;
        let builder = Client::builder().access(global.access.access()?).session_timeout(SESSION);
        let builder = builder.create_namespace(false);
        let client = builder.deadline(global.timeout.min(PATIENCE)).open(global.zookeeper()?).await?;
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
                    let within = global.timeout;
                    let reason = "no snapshot came".to_owned();
                    return Err(Error::from(Unavailable::NotInTime { within, reason, served: true }).into());
                }
            }
        }
    }

    /// Notified, it does not wait for the interval.
    pub(crate) fn impatient(&self) -> Arc<Notify> {
        Arc::clone(&self.impatient)
    }

    /// Rests, and looks. A trouble that passes is told; one that does not is a failure.
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
        let taken = self.client.snapshot(Look { minutes: MINUTES, sample: Some(self.turn) }).await;
        let at = Instant::now();
        self.turn = self.turn.wrapping_add(1);
        self.due = at + self.interval.max(at - began);
        self.earliest = at + SHORTEST.max(at - began);
        let now = Taken { at, snapshot: taken? };
        self.before = self.last.replace(now);
        Ok(())
    }

    /// What was seen last, and when.
    pub(crate) fn view(&self, sort: Sort) -> Option<(View, Instant)> {
        let now = self.last.as_ref()?;
        let before = self.before.as_ref().map(|before| (&before.snapshot, now.at - before.at));
        Some((View::new(before, &now.snapshot, sort), now.at))
    }
}

/// The client has ended: there is nothing to wait for.
fn is_for_good(error: &Error) -> bool {
    matches!(error, Error::Unavailable(Unavailable::Refused(_) | Unavailable::Closed))
}

//! A remote worker whose handler returns the payload: a client of the protocol in `docs/remote-workers.md`.
//!
//! It polls on one connection and finishes on another, because a poll waits. A finish contains all attempts that came during
//! the one before. It sends no heartbeats: each poll is a call, and no attempt is older than a lease.

use std::collections::HashSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bellwether::error::chain;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::super::calls::Connection;
use crate::cluster::KIND;

/// The largest number of attempts in a finish.
const AT_ONCE: usize = 256;

#[derive(Debug, Clone)]
pub(super) struct RemoteWorker {
    at: SocketAddr,
    path: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Attempt {
    job: String,
    attempt: u32,
    fencing_token: i32,
}

#[derive(Deserialize)]
struct Polled {
    attempts: Vec<Offered>,
    stop: Vec<Attempt>,
}

#[derive(Deserialize)]
struct Offered {
    job: String,
    attempt: u32,
    fencing_token: i32,
    payload: Box<RawValue>,
}

#[derive(Serialize)]
struct Finish<'a> {
    attempts: Vec<End<'a>>,
}

#[derive(Serialize)]
struct End<'a> {
    job: &'a str,
    attempt: u32,
    fencing_token: i32,
    outcome: Succeeded<'a>,
}

#[derive(Serialize)]
struct Succeeded<'a> {
    succeeded: &'a RawValue,
}

#[derive(Deserialize)]
struct Finished<'a> {
    #[serde(borrow)]
    results: Vec<Status<'a>>,
}

#[derive(Deserialize)]
struct Status<'a> {
    job: &'a str,
    status: &'a str,
}

/// What the worker has: attempts whose finish was not answered.
#[derive(Debug, Default)]
struct Running(Mutex<HashSet<Attempt>>);

impl Running {
    fn change<T>(&self, change: impl FnOnce(&mut HashSet<Attempt>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl RemoteWorker {
    pub(super) async fn register(at: SocketAddr, name: &str, slots: u32) -> Result<Self, String> {
        let path = format!("/v1/remote-workers/{}", Uuid::now_v7());
        let settings = json!({ "node_id": name, "kinds": [{ "kind": KIND }], "slots": slots });
        Connection::open(at).await?.call("PUT", &path, &settings.to_string(), 200).await?;
        Ok(Self { at, path })
    }

    pub(super) async fn remove(&self) -> Result<(), String> {
        Connection::open(self.at).await?.call("DELETE", &self.path, "", 204).await?;
        Ok(())
    }

    /// Runs jobs until the future is dropped or a call fails.
    pub(super) async fn work(self) -> Result<Infallible, String> {
        let running = Arc::new(Running::default());
        let (begun, ended) = mpsc::unbounded_channel();
        tokio::try_join!(self.poll(&running, &begun), self.finish(&running, ended)).map(|(never, _)| never)
    }

    async fn poll(
        &self,
        running: &Running,
        begun: &mpsc::UnboundedSender<Offered>,
    ) -> Result<Infallible, String> {
        let path = format!("{}/poll", self.path);
        let mut connection = Connection::open(self.at).await?;
        loop {
            let body = running.change(|running| json!({ "running": running })).to_string();
            let answer = connection.call("POST", &path, &body, 200).await?;
            let polled = serde_json::from_slice::<Polled>(answer).map_err(|error| chain(&error))?;
            if let Some(stopped) = polled.stop.first() {
                return Err(format!(
                    "the gateway stopped attempt {} of job {}",
                    stopped.attempt, stopped.job
                ));
            }
            for offered in polled.attempts {
                let Offered { job, attempt, fencing_token, payload: _ } = &offered;
                let attempt = Attempt { job: job.clone(), attempt: *attempt, fencing_token: *fencing_token };
                if running.change(|running| running.insert(attempt)) {
                    begun.send(offered).map_err(|_| "the finishing task ended".to_owned())?;
                }
            }
        }
    }

    async fn finish(
        &self,
        running: &Running,
        mut ended: mpsc::UnboundedReceiver<Offered>,
    ) -> Result<Infallible, String> {
        let path = format!("{}/finish", self.path);
        let mut connection = Connection::open(self.at).await?;
        let mut batch = Vec::new();
        loop {
            batch.clear();
            if ended.recv_many(&mut batch, AT_ONCE).await == 0 {
                return Err("the polling task ended".to_owned());
            }
            let attempts = batch.iter().map(|Offered { job, attempt, fencing_token, payload }| End {
                job,
                attempt: *attempt,
                fencing_token: *fencing_token,
                outcome: Succeeded { succeeded: payload },
            });
            let body = serde_json::to_string(&Finish { attempts: attempts.collect() });
            let body = body.map_err(|error| chain(&error))?;
            let answer = connection.call("POST", &path, &body, 200).await?;
            let answer = serde_json::from_slice::<Finished<'_>>(answer).map_err(|error| chain(&error))?;
            if let Some(open) = answer.results.iter().find(|result| result.status != "closed") {
                return Err(format!("the finish of job {} was answered with {}", open.job, open.status));
            }
            running.change(|running| {
                for Offered { job, attempt, fencing_token, payload: _ } in batch.drain(..) {
                    running.remove(&Attempt { job, attempt, fencing_token });
                }
            });
        }
    }
}

//! Writes. Each returns one of three outcomes: applied, rejected, or unknown.
//!
//! The size is checked before a request is sent: above 1 MB, ZooKeeper drops the connection with all requests queued
//! behind.
//!
//! A transaction that needs containers is sent with creates of those that this session has not seen, and again after a
//! rejection because of one ([`Parents`]). Nothing else is ever sent again here.

use bellwether_core::budget::{MAX_RECORD_BYTES, MAX_TXN_BYTES, MAX_TXN_OPS};
use bellwether_core::outcome::{Outcome, Reason, Rejection};
use bellwether_core::path;
use bellwether_core::port::Transaction;
use bellwether_core::time::WallMillis;
use bellwether_core::txn::{Batch, Delivery, Lifetime, Op, Parents};
use futures::FutureExt;
use futures::future::{Either, Ready, ready};
use zookeeper_client::{Acls, Client, CreateMode, Error, MultiWriteError, MultiWriter};

use crate::access::Access;
use crate::eager::{Eager, send_now};
use crate::error::refusal;
use crate::metrics::{self, Request};
use crate::session::{Answer, SessionState, Zk};

/// The largest single group, a record and its entries, may exceed the byte budget of a batch. The creates of containers are
/// not counted: there are fewer than operations, and each is as small as a path.
const MAX_BYTES: usize = MAX_TXN_BYTES + MAX_RECORD_BYTES;

impl Zk {
    /// Commits all operations or none.
    pub fn commit(&self, ops: Vec<Op>) -> impl Future<Output = Outcome<()>> + Send + use<> {
        let mut batch = Batch::new(Vec::new());
        let fits = batch.push((), ops).is_ok();
        debug_assert!(fits, "the first group always fits");
        self.commit_batch(batch).map(|(_, outcome)| outcome)
    }

    /// Commits a batch and returns it, so that the caller can decide about the parts that were not applied.
    pub fn commit_batch<K: Send + Unpin + 'static>(
        &self,
        batch: Batch<K>,
    ) -> impl Future<Output = (Batch<K>, Outcome<()>)> + Send + use<K> {
        self.commit_of(batch)
    }

    /// Commits a transaction and returns it with its outcome.
    pub fn commit_of<T: Transaction + Send + Unpin + 'static>(
        &self,
        batch: T,
    ) -> impl Future<Output = (T, Outcome<()>)> + Send + use<T> {
        let refused = |reason| Outcome::Rejected(Rejection { at: 0, reason });
        let (ops, bytes) = batch.ops().fold((0, 0), |(ops, bytes), op| (ops + 1, bytes + op.bytes()));
        if ops > MAX_TXN_OPS || bytes > MAX_BYTES {
            let what = format!("a transaction of {ops} operations and {bytes} bytes");
            return Either::Left(ready((batch, refused(Reason::OverBudget(what)))));
        }
        let parents = Parents::of(batch.ops(), &self.seen());
        Either::Right(match parents {
            None => self.multi(batch, Vec::new()),
            Some(parents) => send_now(self.clone().deliver(batch, parents)),
        })
    }

    /// Sends a transaction with its missing containers until its outcome is known or lost.
    async fn deliver<T: Transaction + Send + Unpin + 'static>(
        self,
        mut batch: T,
        mut parents: Parents,
    ) -> (T, Outcome<()>) {
        loop {
            let (back, outcome) = self.multi(batch, parents.creates()).await;
            batch = back;
            let delivery = parents.answered(&mut self.seen(), outcome);
            match delivery {
                Delivery::Done(outcome) => return (batch, outcome),
                Delivery::Look => {
                    if let Err(outcome) = parents.look(&self).await {
                        return (batch, outcome);
                    }
                }
            }
        }
    }

    /// Sends one multi: `first`, then the operations of the transaction.
    fn multi<T: Transaction + Send + Unpin + 'static>(
        &self,
        batch: T,
        first: Vec<Op>,
    ) -> Eager<(T, Outcome<()>)> {
        if self.state() != SessionState::Connected {
            let not_sent = Outcome::Rejected(Rejection { at: 0, reason: Reason::NotSent });
            return Eager::Ready(Some((batch, not_sent)));
        }
        metrics::sent(Request::Write, first.len() + batch.ops().count());
        let access = self.access().clone();
        self.send(
            Request::Write,
            move |client| async move {
                let mut writer = client.new_multi_writer();
                let added = first.iter().chain(batch.ops()).try_for_each(|op| add(&mut writer, &access, op));
                if let Err(source) = added {
                    return Committed(batch, Err(MultiWriteError::RequestFailed { source }));
                }
                let committed = writer.commit().await;
                Committed(batch, committed.map(|_| ()))
            },
            |Committed(batch, committed)| (batch, outcome(committed)),
        )
    }

    /// Creates an ephemeral znode named `prefix` and a sequence number, and returns its full path. Not idempotent:
    /// put a unique id into the prefix, so that the znode can be found if the reply is lost.
    pub fn create_sequential(
        &self,
        prefix: String,
        data: Vec<u8>,
    ) -> impl Future<Output = Outcome<String>> + Send + use<> {
        let list = self.access().list(&prefix);
        self.write(move |client| async move {
            let options = CreateMode::EphemeralSequential.with_acls(Acls::new(&list));
            let (_, sequence) = client.create(&prefix, &data, &options).await?;
            Ok(format!("{prefix}{sequence}"))
        })
    }

    /// Reads ZooKeeper's clock: sets `/jobs`, which has no data, and returns the time of that write.
    pub fn read_clock(&self) -> impl Future<Output = Outcome<WallMillis>> + Send + use<> {
        self.write(|client| async move {
            let stat = client.set_data(path::JOBS, &[], None).await?;
            Ok(WallMillis(u64::try_from(stat.mtime).unwrap_or(0)))
        })
    }

    fn write<T, F>(
        &self,
        send: impl FnOnce(Client) -> F + Send + 'static,
    ) -> Either<Ready<Outcome<T>>, Eager<Outcome<T>>>
    where
        T: Send + Unpin + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        if self.state() != SessionState::Connected {
            let not_sent = Outcome::Rejected(Rejection { at: 0, reason: Reason::NotSent });
            return Either::Left(ready(not_sent));
        }
        metrics::sent(Request::Write, 1);
        self.send(Request::Write, send, |result: Result<T, Error>| {
            outcome(result.map_err(MultiWriteError::from))
        })
        .right_future()
    }
}

fn add(writer: &mut MultiWriter<'_>, access: &Access, op: &Op) -> Result<(), Error> {
    match op {
        Op::Check { path, version } => writer.add_check_version(path, *version),
        Op::Create { path, data, lifetime } => {
            let mode = match lifetime {
                Lifetime::Persistent => CreateMode::Persistent,
                Lifetime::Ephemeral => CreateMode::Ephemeral,
                Lifetime::Container => CreateMode::Container,
            };
            let list = access.list(path);
            writer.add_create(path, data, &mode.with_acls(Acls::new(&list)))
        }
        Op::Set { path, data, version } => writer.add_set_data(path, data, Some(*version)),
        Op::Delete { path, version } => writer.add_delete(path, *version),
    }
}

fn outcome<T>(result: Result<T, MultiWriteError>) -> Outcome<T> {
    let (at, error, whole) = match result {
        Ok(value) => return Outcome::Applied(value),
        Err(MultiWriteError::OperationFailed { index, source }) => (index, source, false),
        // Either a single operation failed, or the server did not look at the operations.
        Err(MultiWriteError::RequestFailed { source }) => (0, source, true),
    };
    match refusal(&error) {
        Some(Reason::Other(why)) if whole => {
            Outcome::Rejected(Rejection { at, reason: Reason::Refused(why) })
        }
        Some(reason) => Outcome::Rejected(Rejection { at, reason }),
        None => {
            metrics::unknown();
            tracing::debug!(%error, "the reply to a write was lost: its outcome is unknown");
            Outcome::Unknown
        }
    }
}

/// The result of a multi, with its batch.
struct Committed<T>(T, Result<(), MultiWriteError>);

impl<T> Answer for Committed<T> {
    fn is_from_server(&self) -> bool {
        match &self.1 {
            Ok(()) | Err(MultiWriteError::OperationFailed { .. }) => true,
            Err(MultiWriteError::RequestFailed { .. }) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_definite_codes_are_rejections_and_all_others_are_unknown() {
        let failed = |source| outcome::<()>(Err(MultiWriteError::RequestFailed { source }));
        for unknown in [
            Error::ConnectionLoss,
            Error::Timeout,
            Error::SessionExpired,
            Error::ClientClosed,
            Error::UnexpectedErrorCode(-999),
            Error::UnexpectedError("no response".to_owned()),
        ] {
            assert_eq!(failed(unknown.clone()), Outcome::Unknown, "{unknown}");
        }
        let throttled = Reason::Refused(Error::Throttled.to_string());
        assert_eq!(failed(Error::Throttled), Outcome::Rejected(Rejection { at: 0, reason: throttled }));
        let stale = MultiWriteError::OperationFailed { index: 2, source: Error::BadVersion };
        let rejected = Rejection { at: 2, reason: Reason::BadVersion };
        assert_eq!(outcome::<()>(Err(stale)), Outcome::Rejected(rejected));
    }

    #[test]
    fn a_refused_operation_keeps_its_position() {
        let throttled = MultiWriteError::OperationFailed { index: 2, source: Error::QuotaExceeded };
        let reason = Reason::Other(Error::QuotaExceeded.to_string());
        assert_eq!(outcome::<()>(Err(throttled)), Outcome::Rejected(Rejection { at: 2, reason }));
    }

    #[test]
    fn only_a_result_of_the_server_is_measured() {
        let failed = MultiWriteError::OperationFailed { index: 2, source: Error::BadVersion };
        assert!(Committed((), Ok(())).is_from_server());
        assert!(Committed((), Err(failed)).is_from_server());
        let lost = MultiWriteError::RequestFailed { source: Error::ConnectionLoss };
        assert!(!Committed((), Err(lost)).is_from_server());
    }
}

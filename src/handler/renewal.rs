//! The renewal of an attempt's lease by its handler.

use std::future::poll_fn;
use std::time::Duration;

use bellwether_core::job::{Policy, PolicyError};
use bellwether_core::remedy::ErrorClass;
use bellwether_host::clock;

use super::JobContext;

/// The lease of an attempt is not renewed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RenewalError {
    /// The requested lease is out of bounds. Nothing is requested.
    #[error(transparent)]
    Invalid(#[from] PolicyError),
    /// The lease has ended: the job goes to another worker, or is there already.
    #[error("the attempt's lease expired before it was renewed")]
    LeaseExpired,
    /// The attempt should stop: it was cancelled, timed out, was handed back, or was closed by another process.
    #[error("the attempt was told to stop before its lease was renewed")]
    Stopped,
}

impl RenewalError {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Invalid(_) => ErrorClass::Invalid,
            Self::LeaseExpired | Self::Stopped => ErrorClass::Failed,
        }
    }
}

bellwether_core::impl_remedy!(RenewalError);

impl JobContext {
    /// Renews the lease: it lasts at least `lease` from now. The current lease is never shortened. 1 s to a week.
    ///
    /// Returns immediately. The renewal is written when a third of the current lease has passed, together with those
    /// of the worker's other jobs, so a job that ends earlier writes nothing. [`JobContext::lease_until`] shows when
    /// it was written. While ZooKeeper cannot be reached, the renewal waits and the current lease runs on.
    ///
    /// A job that renews its lease automatically needs this only to get a longer lease.
    ///
    /// # Errors
    /// [`RenewalError`], if the lease is out of bounds, has already ended, or the attempt should stop. Then nothing is
    /// requested.
    pub fn renew_lease(&self, lease: Duration) -> Result<(), RenewalError> {
        self.may_renew(lease)?;
        self.run.pulse.renew(lease);
        Ok(())
    }

    /// Like [`JobContext::renew_lease`], but the renewal is written immediately, and the call returns when ZooKeeper
    /// has confirmed it. So when it returns, the attempt was still open when a write was applied that was sent after
    /// the call, and [`JobContext::lease_until`] is at least `lease` after the call.
    ///
    /// Each call costs a transaction. A blocking handler can wait for it with
    /// `tokio::runtime::Handle::current().block_on`.
    ///
    /// # Errors
    /// [`RenewalError::Invalid`] immediately; [`RenewalError::LeaseExpired`] if the current lease ends before the
    /// renewal is confirmed, for example because ZooKeeper cannot be reached; [`RenewalError::Stopped`] if the attempt
    /// should stop. So the call ends with the current lease at the latest.
    ///
    /// # Cancellation
    /// The renewal may be written later, as after [`JobContext::renew_lease`].
    ///
    /// # Connection loss
    /// The call waits for the session. After a lost reply the worker reads the assignment and writes again.
    pub async fn renew_lease_confirmed(&self, lease: Duration) -> Result<(), RenewalError> {
        self.may_renew(lease)?;
        let ticket = self.run.pulse.renew_now(lease);
        tokio::select! {
            // A renewal that is confirmed too late does not count.
            biased;
            () = self.run.cancelled.cancelled() => Err(self.stopped()),
            () = poll_fn(|cx| self.run.pulse.poll_confirmed(ticket, cx)) => Ok(()),
            () = self.lease_end() => Err(RenewalError::LeaseExpired),
        }
    }

    fn may_renew(&self, lease: Duration) -> Result<(), RenewalError> {
        Policy { lease: Some(lease), ..Policy::default() }.check()?;
        if self.is_cancelled() || self.is_lease_over() { Err(self.stopped()) } else { Ok(()) }
    }

    fn stopped(&self) -> RenewalError {
        if self.is_lease_over() { RenewalError::LeaseExpired } else { RenewalError::Stopped }
    }

    fn is_lease_over(&self) -> bool {
        clock::now() >= self.run.pulse.until()
    }

    /// Resolves when the lease has ended. It may be extended during the sleep.
    async fn lease_end(&self) {
        while !self.is_lease_over() {
            clock::sleep_until(self.run.pulse.until()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use bellwether_core::job::{Payload, Progress};
    use bellwether_core::name::{JobId, Kind};
    use bellwether_core::time::Millis;
    use bellwether_host::worker::{Pulse, Said};

    use super::*;

    const LEASE: Duration = Duration::from_secs(1);

    fn detached() -> JobContext {
        let payload = Payload::json(*b"1").unwrap();
        JobContext::detached(JobId::new("a").unwrap(), Kind::new("sum").unwrap(), payload)
    }

    /// An attempt whose worker writes nothing, with `left` of its lease.
    fn unwritten(left: Duration) -> JobContext {
        let mut context = detached();
        let until = bellwether_host::clock::now() + left;
        let of = (context.job().clone(), 1);
        context.run.pulse = Arc::new(Pulse::new(of, Some(Arc::new(|_| {})), until, Progress::default()));
        context
    }

    #[test]
    fn trust_ends_with_the_lease_of_the_attempt() {
        let context = unwritten(LEASE);
        assert_eq!(context.run.trusted_until(), context.run.pulse.until());
        assert!(unwritten(Duration::ZERO).trusted_until() <= Instant::now());
        context.run.pulse.set_until(Millis(u64::MAX >> 8));
        assert!(context.trusted_until() < Instant::now() + Duration::from_secs(61), "the session's trust");
    }

    /// The caller may compare the value with a time that it read before the call.
    #[test]
    fn trust_is_in_the_past_once_the_attempt_should_stop() {
        let context = unwritten(LEASE);
        context.cancellation().cancel();
        let before = Instant::now();
        assert!(context.trusted_until() < before);
    }

    #[tokio::test]
    async fn a_lease_that_is_over_is_not_renewed() {
        let over = unwritten(Duration::ZERO);
        assert_eq!(over.renew_lease(LEASE), Err(RenewalError::LeaseExpired));
        assert_eq!(over.renew_lease_confirmed(LEASE).await, Err(RenewalError::LeaseExpired));
        assert_eq!(over.run.pulse.take(), Said::default(), "nothing is requested");
        let stopped = unwritten(LEASE);
        stopped.cancellation().cancel();
        assert_eq!(stopped.renew_lease(LEASE), Err(RenewalError::Stopped));
        assert!(matches!(stopped.renew_lease(Duration::ZERO), Err(RenewalError::Invalid(_))));
    }

    #[tokio::test]
    async fn an_unconfirmed_renewal_fails_when_the_current_lease_ends() {
        let context = unwritten(Duration::from_millis(50));
        assert_eq!(context.renew_lease_confirmed(LEASE).await, Err(RenewalError::LeaseExpired));
        assert!(Instant::now() >= context.lease_until());
    }

    #[tokio::test]
    async fn a_confirmed_renewal_returns_and_a_stop_wins() {
        let context = unwritten(60 * LEASE);
        let (confirmed, ()) = tokio::join!(context.renew_lease_confirmed(LEASE), async {
            context.run.pulse.confirm(1);
        });
        assert_eq!(confirmed, Ok(()));
        let (stopped, ()) = tokio::join!(context.renew_lease_confirmed(LEASE), async {
            context.cancellation().cancel();
        });
        assert_eq!(stopped, Err(RenewalError::Stopped));
        assert_eq!(detached().renew_lease_confirmed(LEASE).await, Ok(()), "there is no worker that writes");
    }
}

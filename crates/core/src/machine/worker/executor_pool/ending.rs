//! How an attempt ends that was started: by its handler, or by the reason to stop it.
//!
//! | reason to stop | the handler succeeded | the handler failed or was aborted |
//! | --- | --- | --- |
//! | none | succeeded | failed; released if it lapsed |
//! | cancel flag | succeeded: a finished run wins | cancelled |
//! | hand back (drain) | succeeded | released |
//! | lease expired | succeeded | lease expired |
//! | zombie | dropped | dropped |
//!
//! If the handler reports that the job can never succeed, or must be retried later, this outcome wins like a success,
//! except over a cancel.

use super::Run;
use crate::job::Ending;

/// Why a running attempt must stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum StopReason {
    None,
    Cancel,
    Release,
    /// The lease has expired.
    Expire,
    /// The attempt is already closed.
    Zombie,
}

impl StopReason {
    /// Returns how the attempt ends after its handler; `None` for a zombie, which is closed already.
    pub(super) fn ending(self, how: Run) -> Option<Ending> {
        Some(match (self, how) {
            (Self::Zombie, _) => return None,
            (Self::None | Self::Cancel | Self::Release | Self::Expire, Run::Succeeded(result)) => {
                Ending::Succeeded(result)
            }
            (
                Self::Cancel,
                Run::Failed(_) | Run::Invalid(_) | Run::Deferred(_) | Run::Aborted | Run::Lapsed,
            ) => Ending::Cancelled,
            (Self::None | Self::Release | Self::Expire, Run::Invalid(why)) => Ending::Invalid(why),
            (Self::None | Self::Release | Self::Expire, Run::Deferred(wait)) => Ending::Snoozed(wait),
            (Self::Release, Run::Failed(_) | Run::Aborted | Run::Lapsed) => Ending::Released,
            (Self::Expire, Run::Failed(_) | Run::Aborted | Run::Lapsed) => Ending::LeaseExpired,
            // If the session is still alive, the attempt was stopped without a failure.
            (Self::None, Run::Lapsed) => Ending::Released,
            (Self::None, Run::Failed(error)) => Ending::Failed(error),
            (Self::None, Run::Aborted) => Ending::Failed("the handler was aborted".to_owned()),
        })
    }
}

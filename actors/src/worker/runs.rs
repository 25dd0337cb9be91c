//! The port through which the executor pool runs handlers.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_core::job::Progress;
use bellwether_core::machine::worker::Start;
use bellwether_core::machine::worker::executor_pool::{Run, Stop};
use bellwether_core::name::{JobId, Kind};
use bellwether_core::time::Millis;

use super::pulse::{Pulse, Word};

/// Runs handlers in slots. The host creates one for each executor pool.
///
/// The slots belong to the process, because an abandoned blocking handler keeps its slot until it returns. When the
/// port is dropped, every run that it launched is asked to stop and aborted.
pub trait Runs: Send {
    /// Creates the pulse of an attempt that starts with this progress.
    fn pulse(&mut self, of: Word, until: Millis, progress: Progress) -> Arc<Pulse>;

    /// Whether the leases of this kind's attempts are renewed automatically. A job's own setting takes precedence.
    fn auto_renews(&self, kind: &Kind) -> bool;

    /// The number of abandoned handlers of each kind with a concurrency limit: their runs have ended, in this or an earlier
    /// incarnation, but their code still runs.
    fn abandoned(&mut self) -> BTreeMap<Kind, u32>;

    /// Grants a slot and returns `true`, or returns `false` and sends
    /// [`ExecutorPoolMsg::Slot`](super::executor_pool::ExecutorPoolMsg::Slot) when it has granted one.
    fn want_slot(&mut self) -> bool;

    /// Sets the number of slots of the process. Runs that use more slots than remain continue, and their slots end with
    /// them.
    fn resize(&mut self, slots: u32);

    /// Returns the granted slot.
    fn return_slot(&mut self);

    /// The number of slots without a handler, including the granted one.
    fn free(&self) -> usize;

    /// Runs the handler in the granted slot. The end of the run, whatever its cause, is sent once as
    /// [`ExecutorPoolMsg::Ended`](super::executor_pool::ExecutorPoolMsg::Ended).
    ///
    /// The handler may start immediately, so its pulse may notify the status reporter before the executor pool's
    /// message about this attempt arrives there.
    ///
    /// # Errors
    /// How the attempt ends if its run cannot start. The slot is returned.
    fn launch(&mut self, start: Start, pulse: Arc<Pulse>) -> Result<(), Run>;

    /// Asks a handler to stop, with the reason; returns `false` if its run has ended.
    fn signal(&mut self, job: &JobId, stop: Stop) -> bool;

    /// Aborts a run. Its end is sent as for any other run.
    fn abort(&mut self, job: &JobId);

    /// Forgets a run whose end the executor pool has received.
    fn forget(&mut self, job: &JobId);
}

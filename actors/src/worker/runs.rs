//! The port through which the executor pool runs handlers.

use std::sync::Arc;

use bellwether_core::job::Progress;
use bellwether_core::machine::worker::Start;
use bellwether_core::machine::worker::executor_pool::Run;
use bellwether_core::name::{JobId, Kind};
use bellwether_core::time::Millis;

use super::pulse::{Pulse, Word};

/// Runs handlers in slots. A host gives one to each executor pool.
///
/// The slots belong to the process, because a blocking handler that was given up keeps its slot until it returns. When the
/// port is dropped, every run that it launched is told to stop and aborted.
pub trait Runs: Send {
    /// Makes the pulse of an attempt that begins with this progress.
    fn pulse(&mut self, of: Word, until: Millis, progress: Progress) -> Arc<Pulse>;

    /// Whether the lease of this kind's attempts is renewed automatically, unless the job says otherwise.
    fn auto_renews(&self, kind: &Kind) -> bool;

    /// Grants a slot now, or says `false` and sends [`ExecutorPoolMsg::Slot`](super::executor_pool::ExecutorPoolMsg::Slot) when it
    /// has granted one.
    fn want_slot(&mut self) -> bool;

    /// Gives the granted slot back.
    fn return_slot(&mut self);

    /// The slots that no handler has, the granted one included.
    fn free(&self) -> usize;

    /// Runs the handler in the granted slot. Its end comes as
    /// [`ExecutorPoolMsg::Ended`](super::executor_pool::ExecutorPoolMsg::Ended), once, however the run ends.
    ///
    /// The handler may begin at once, so its pulse may notify the status reporter before the executor pool's message about
    /// this attempt gets there.
    ///
    /// # Errors
    /// How the attempt ends when its run cannot begin. The slot is given back.
    fn launch(&mut self, start: Start, pulse: Arc<Pulse>) -> Result<(), Run>;

    /// Tells a handler to stop; `false` when its run has ended.
    fn signal(&mut self, job: &JobId) -> bool;

    /// Aborts a run. Its end comes as for any other.
    fn abort(&mut self, job: &JobId);

    /// The executor pool has the end of this run.
    fn forget(&mut self, job: &JobId);
}

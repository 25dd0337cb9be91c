//! State machines of the worker registry: [`membership`] tracks the live workers, and [`recovery`] requeues the jobs of
//! dead workers.

pub mod membership;
pub mod recovery;

//! Remote workers: processes that run jobs through this gateway.
//!
//! A remote worker is an ordinary node in the gateway's process, with its own session and inbox, so all promises of a worker
//! hold for it. Only its handlers are special: they wait until the remote process finishes the attempt.
//!
//! | file | concern |
//! | --- | --- |
//! | `registry` | the workers by key, their limit, and their end with the gateway |
//! | `worker` | the life of one worker: node, drain, silence |
//! | `table` | pure: which attempts were delivered, must be stopped, or were finished |
//! | `attempt` | the handler of one attempt, and the wait for its close |
//! | `settings` | what a worker registers with |

mod attempt;
mod registry;
mod settings;
mod table;
mod worker;

pub(super) use attempt::{Attempt, Finished};
pub(super) use registry::RemoteWorkers;
pub(super) use settings::{KindSettings, Settings};
pub(super) use table::{Id, Instructions, Reason};
pub(super) use worker::{Former, Life};

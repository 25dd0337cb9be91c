//! Sub-jobs of a running job. Here the node's client shares the session of its worker; the product's client has its own
//! session.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use bellwether::Group;
use bellwether::client::Attempt;

use super::{Env, Wish};

/// The sub-jobs that a handler submits.
pub(crate) struct Spawned {
    /// The groups, in the order in which the handler opens them.
    pub(crate) groups: Vec<SubJobs>,
    /// Set to false when the run ends. Then the future is dropped, unless the handler ignores signals.
    pub(crate) runs: Rc<Cell<bool>>,
}

/// One group of them.
pub(crate) struct SubJobs {
    /// The running attempt, and whether this group asks for the finished handler.
    pub(crate) attempt: Attempt,
    /// The kind, options and optional total of the group.
    pub(crate) group: Group,
    /// The members, in the order of their numbers.
    pub(crate) members: Vec<Wish>,
}

impl Env {
    /// Submits a job's sub-jobs. Returns whether all were accepted. A run that has ended is not polled any longer.
    pub(crate) async fn spawn(&self, spawned: Spawned) -> bool {
        let runs = Rc::clone(&spawned.runs);
        let mut handler = pin!(self.handle_nest(spawned));
        poll_fn(|context| if runs.get() { handler.as_mut().poll(context) } else { Poll::Ready(false) }).await
    }

    async fn handle_nest(&self, spawned: Spawned) -> bool {
        for SubJobs { attempt, group, members } in spawned.groups {
            let Ok(group) = self.client.sub_group(&attempt, group).await else { return false };
            for (number, wish) in (0..).zip(members) {
                if !self.submit_member(&group, number, wish, false).await {
                    return false;
                }
            }
        }
        true
    }
}

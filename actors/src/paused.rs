//! The answers to requests of a leader that may not act.
//!
//! A member of the leader wing sends requests only while its term is active. While the term is paused, its host answers
//! each request at once as a session without a connection does. So the members need no code for a pause: each of them
//! already stops at such an answer and lists everything again at `Resume`. Reads are refused together with writes, because a
//! member that could read would decide the same write again and again.

use std::future::ready;

use bellwether_core::outcome::{Outcome, Reason, Rejection};
use bellwether_core::port::{Node, ReadError, ReadResult, Reply, Requests};
use bellwether_core::txn::Op;

use crate::Ask;

fn unsent<T>() -> Outcome<T> {
    Outcome::Rejected(Rejection { at: 0, reason: Reason::NotSent })
}

fn unread<T>() -> ReadResult<T> {
    Err(ReadError::Disconnected)
}

impl<M> Ask<M> {
    /// Answers the request without sending it.
    #[must_use]
    pub fn refuse(self) -> Option<M> {
        match self {
            Self::Commit(commit) => commit.answered(unsent()),
            Self::Get(_, answer) => answer(unread()),
            Self::Children(_, answer) => answer(unread()),
            Self::GetMany(_, answer) => answer(unread()),
            Self::ChildrenMany(_, answer) => answer(unread()),
        }
    }
}

/// The session of a task that starts while its leader may not act: it sends nothing.
#[derive(Debug, Clone, Copy)]
pub struct Paused;

impl Requests for Paused {
    fn commit(&self, _: Vec<Op>) -> Reply<Outcome<()>> {
        Box::pin(ready(unsent()))
    }

    fn create_sequential(&self, _: String, _: Vec<u8>) -> Reply<Outcome<String>> {
        Box::pin(ready(unsent()))
    }

    fn sync(&self, _: String) -> Reply<ReadResult<()>> {
        Box::pin(ready(unread()))
    }

    fn get(&self, _: String) -> Reply<ReadResult<Option<Node>>> {
        Box::pin(ready(unread()))
    }

    fn children(&self, _: String) -> Reply<ReadResult<Option<Vec<String>>>> {
        Box::pin(ready(unread()))
    }

    fn get_many(&self, _: Vec<String>) -> Reply<ReadResult<Vec<Option<Node>>>> {
        Box::pin(ready(unread()))
    }

    fn children_many(&self, _: Vec<String>) -> Reply<ReadResult<Vec<Option<Vec<String>>>>> {
        Box::pin(ready(unread()))
    }
}

//! A simulated session as core's interface of one, for tasks: several requests, one after the other.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bellwether_core::outcome::Outcome;
use bellwether_core::port::{Node, ReadResult, Reply, Requests};
use bellwether_core::txn::Op;
use bellwether_keeper::proto::Request;

use super::Msg;
use super::context::Context as Hands;
use crate::zk::Zk;
use crate::zk::ask::{self, Answer};

/// Where an answer is put for the task that waits for it.
type Slot = Arc<Mutex<Option<Answer>>>;

/// The requests of one task that the world has not sent yet.
#[derive(Clone, Default)]
struct Outbox(Arc<Mutex<Vec<(Request, Slot)>>>);

/// An answer that is on its way.
struct Waiting(Slot);

impl Future for Waiting {
    type Output = Answer;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Answer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Poll::Pending, Poll::Ready)
    }
}

impl Outbox {
    fn ask<T>(&self, request: Request, decode: fn(Answer) -> T) -> Reply<T>
    where
        T: Send + 'static,
    {
        let slot = Slot::default();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((request, Arc::clone(&slot)));
        Box::pin(async move { decode(Waiting(slot).await) })
    }
}

impl Requests for Outbox {
    fn commit(&self, ops: Vec<Op>) -> Reply<Outcome<()>> {
        self.ask(ask::commit(&ops), ask::written)
    }

    fn create_container(&self, path: String) -> Reply<Outcome<()>> {
        self.ask(ask::create_container(path), ask::written)
    }

    fn create_sequential(&self, prefix: String, data: Vec<u8>) -> Reply<Outcome<String>> {
        self.ask(ask::create_sequential(prefix, data), ask::created)
    }

    fn sync(&self, path: String) -> Reply<ReadResult<()>> {
        self.ask(Request::Sync { path }, ask::answered)
    }

    fn get(&self, path: String) -> Reply<ReadResult<Option<Node>>> {
        self.ask(ask::get(path), ask::got)
    }

    fn children(&self, path: String) -> Reply<ReadResult<Option<Vec<String>>>> {
        self.ask(ask::children(path), ask::listed)
    }

    fn get_many(&self, paths: Vec<String>) -> Reply<ReadResult<Vec<Option<Node>>>> {
        // As the client library: nothing is sent.
        if paths.is_empty() {
            return Box::pin(std::future::ready(Ok(Vec::new())));
        }
        self.ask(ask::get_many(paths), ask::got_many)
    }

    fn children_many(&self, paths: Vec<String>) -> Reply<ReadResult<Vec<Option<Vec<String>>>>> {
        if paths.is_empty() {
            return Box::pin(std::future::ready(Ok(Vec::new())));
        }
        self.ask(ask::children_many(paths), ask::listed_many)
    }
}

/// Starts a task of a concern. The world polls it when an answer has come; its output is a message.
pub(super) fn begin<M: 'static>(
    cx: &mut Hands<'_>,
    zk: Zk,
    task: impl FnOnce(Arc<dyn Requests>) -> Reply<Option<M>> + 'static,
    mail: impl FnOnce(Option<M>) -> Msg + 'static,
) {
    cx.begin(move |shell| async move {
        let outbox = Outbox::default();
        let mut task = task(Arc::new(outbox.clone()));
        let polled = std::future::poll_fn(|context| {
            let polled = task.as_mut().poll(context);
            let requests = std::mem::take(&mut *outbox.0.lock().unwrap_or_else(PoisonError::into_inner));
            for (request, slot) in requests {
                shell.send(zk, request, move |answer| {
                    *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
                });
            }
            polled
        });
        let msg = polled.await;
        shell.tell(mail(msg));
    });
}

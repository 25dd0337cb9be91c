//! The clock, the timers, the tasks and the status of the session.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use bellwether_core::port::Reply;
use bellwether_core::time::{Millis, WallMillis};
use futures::future::BoxFuture;
use uuid::Uuid;

use super::session::InMemory;
use super::{Link, World};
use crate::client::runtime::{Runtime, Sleep, Status, Statuses};

pub(super) struct InWorld(pub(super) Arc<World>);

impl InWorld {
    fn status_and_number(&self) -> (Status, u64) {
        let state = self.0.state();
        let status = match &state.link {
            Link::Up | Link::Lagging => Status::Connected(Arc::new(InMemory(Arc::clone(&self.0)))),
            Link::Connecting(error) => Status::Connecting { error: error.map(str::to_owned) },
            Link::Down | Link::Closed => Status::Disconnected,
            Link::Refused(error) => Status::Refused(error.clone()),
        };
        (status, state.links)
    }
}

impl Runtime for InWorld {
    fn status(&self) -> Status {
        self.status_and_number().0
    }

    fn statuses(&self) -> Box<dyn Statuses> {
        let seen = self.0.state().links;
        Box::new(Following { runtime: Self(Arc::clone(&self.0)), seen })
    }

    fn servers(&self) -> &str {
        "server:2181"
    }

    fn close(&self) -> Reply<()> {
        self.0.link(Link::Closed);
        Box::pin(async {})
    }

    fn exposed(&self) -> Reply<Option<Vec<String>>> {
        Box::pin(async { Some(vec!["/open".to_owned()]) })
    }

    fn now(&self) -> Millis {
        self.0.now()
    }

    fn wall(&self) -> WallMillis {
        self.0.wall()
    }

    fn sleep_until(&self, at: Millis) -> Sleep {
        let world = Arc::clone(&self.0);
        let number = {
            let mut state = world.state();
            state.last_timer += 1;
            state.last_timer
        };
        Sleep::of(poll_fn(move |context| {
            let mut state = world.state();
            if state.now >= at {
                return Poll::Ready(());
            }
            state.timers.insert((at, number), context.waker().clone());
            Poll::Pending
        }))
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.0.state().tasks.push(task);
    }

    fn uuid(&self) -> Uuid {
        let mut state = self.0.state();
        state.last_uuid += 1;
        Uuid::from_u128(state.last_uuid)
    }
}

struct Following {
    runtime: InWorld,
    seen: u64,
}

impl Statuses for Following {
    fn now(&mut self) -> Status {
        let (status, seen) = self.runtime.status_and_number();
        self.seen = seen;
        status
    }

    fn changed(&mut self) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(poll_fn(|context| {
            let mut state = self.runtime.0.state();
            if matches!(state.link, Link::Closed) {
                return Poll::Ready(false);
            }
            if state.links == self.seen {
                state.followers.push(context.waker().clone());
                return Poll::Pending;
            }
            self.seen = state.links;
            Poll::Ready(true)
        }))
    }
}

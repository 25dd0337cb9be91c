//! Futures whose request is sent when they are created.
//!
//! The client library sends a request when its method is *called*, but the futures that it returns borrow the
//! client. To await one elsewhere, it is wrapped with a clone of the client in an `async` block, and a block runs
//! only when polled. So it is polled once here, which runs it to its first await: the request is queued in the order
//! of calls. Dropping an eager future cancels nothing, because the request was sent.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

pub(crate) enum Eager<T> {
    Ready(Option<T>),
    Pending(Pin<Box<dyn Future<Output = T> + Send>>),
}

pub(crate) fn send_now<T>(future: impl Future<Output = T> + Send + 'static) -> Eager<T> {
    let mut future: Pin<Box<dyn Future<Output = T> + Send>> = Box::pin(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Eager::Ready(Some(value)),
        Poll::Pending => Eager::Pending(future),
    }
}

impl<T: Unpin> Future for Eager<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        match &mut *self {
            Self::Ready(value) => {
                Poll::Ready(value.take().expect("a future is not polled after it is ready"))
            }
            Self::Pending(future) => future.as_mut().poll(context),
        }
    }
}

//! State that handlers share.

use std::future::Future;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{
    DeadLetter, Finished, HandlerError, HandlerResult, JobContext, KindHandler, StateHandlerFn, create,
};
use crate::client::{JobKind, JoinKind, Members, ParentKind};

/// Creates handlers whose first argument is a state, for example a connection pool. Each attempt gets a clone of it, so
/// put a state that is expensive to clone into an [`Arc`](std::sync::Arc).
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use std::sync::Arc;
///
/// use bellwether::Handlers;
/// use bellwether::handler::with_state;
///
/// let total = with_state(Arc::new(AtomicU64::new(0)));
/// let handlers = Handlers::new()
///     .add(total.job("deposit", |total, _, cents: u64| async move {
///         Ok(total.fetch_add(cents, Ordering::SeqCst) + cents)
///     }))
///     .add(total.job("total", |total, _, (): ()| async move { Ok(total.load(Ordering::SeqCst)) }));
/// # assert!(handlers.check().is_ok());
/// ```
///
/// The compiler checks the type of the state:
///
/// ```compile_fail,E0631
/// # use bellwether::JobKind;
/// # use bellwether::handler::with_state;
/// # struct Sum;
/// # impl JobKind for Sum {
/// #     const NAME: &'static str = "sum";
/// #     type Payload = Vec<i64>;
/// #     type Result = i64;
/// # }
/// let sum = with_state(0_u32).kind::<Sum>(|offset: String, _, numbers: Vec<i64>| async move { Ok(0) });
/// ```
pub fn with_state<S: Clone + Send + Sync + 'static>(state: S) -> WithState<S> {
    WithState(state)
}

/// Creates handlers that share a state: see [`with_state`]. Its methods correspond to the functions of
/// [`bellwether::handler`](super).
#[derive(Debug, Clone)]
pub struct WithState<S>(S);

impl<S: Clone + Send + Sync + 'static> WithState<S> {
    /// Like [`handler`](fn@super::handler()). A type that holds its state implements [`Handler`](super::Handler) instead.
    pub fn kind<K: JobKind>(&self, run: impl StateHandlerFn<S, K::Payload, K::Result>) -> KindHandler {
        let Self(state) = self.clone();
        create::handler::<K>(move |context, payload| run(state.clone(), context, payload))
    }

    /// Like [`blocking`](super::blocking).
    pub fn blocking<K: JobKind>(
        &self,
        run: impl Fn(S, JobContext, K::Payload) -> Result<K::Result, HandlerError> + Send + Sync + 'static,
    ) -> KindHandler {
        self.blocking_job(K::NAME, run)
    }

    /// Like [`job`](super::job).
    pub fn job<P, R, Fut>(
        &self,
        kind: &str,
        run: impl Fn(S, JobContext, P) -> Fut + Send + Sync + 'static,
    ) -> KindHandler
    where
        P: DeserializeOwned,
        R: Serialize,
        Fut: Future<Output = Result<R, HandlerError>> + Send + 'static,
    {
        let Self(state) = self.clone();
        create::job(kind, move |context, payload| run(state.clone(), context, payload))
    }

    /// Like [`blocking_job`](super::blocking_job).
    pub fn blocking_job<P, R>(
        &self,
        kind: &str,
        run: impl Fn(S, JobContext, P) -> Result<R, HandlerError> + Send + Sync + 'static,
    ) -> KindHandler
    where
        P: DeserializeOwned,
        R: Serialize,
    {
        let Self(state) = self.clone();
        create::blocking_job(kind, move |context, payload| run(state.clone(), context, payload))
    }

    /// Like [`join`](super::join).
    pub fn join<K: JoinKind>(&self, run: impl StateHandlerFn<S, Members<K>, K::Joined>) -> KindHandler {
        let Self(state) = self.clone();
        create::join::<K>(move |context, members| run(state.clone(), context, members))
    }

    /// Like [`finished`](super::finished).
    pub fn finished<K: ParentKind>(
        &self,
        run: impl StateHandlerFn<S, Finished<K, K::SubJob>, K::Finished>,
    ) -> KindHandler {
        let Self(state) = self.clone();
        create::finished::<K>(move |context, finished| run(state.clone(), context, finished))
    }

    /// Like [`dead_letter`](super::dead_letter()).
    pub fn dead_letter<K: JobKind>(&self, run: impl StateHandlerFn<S, DeadLetter<K>, ()>) -> KindHandler {
        let Self(state) = self.clone();
        create::dead_letter::<K>(move |context, letter| run(state.clone(), context, letter))
    }

    /// Like [`join_job`](super::join_job).
    pub fn join_job<R, Fut>(
        &self,
        kind: &str,
        run: impl Fn(S, JobContext, Members) -> Fut + Send + Sync + 'static,
    ) -> KindHandler
    where
        R: Serialize,
        Fut: Future<Output = Result<R, HandlerError>> + Send + 'static,
    {
        let Self(state) = self.clone();
        create::join_job(kind, move |context, members| run(state.clone(), context, members))
    }

    /// Like [`finished_job`](super::finished_job).
    pub fn finished_job<R, Fut>(
        &self,
        kind: &str,
        run: impl Fn(S, JobContext, Finished) -> Fut + Send + Sync + 'static,
    ) -> KindHandler
    where
        R: Serialize,
        Fut: Future<Output = Result<R, HandlerError>> + Send + 'static,
    {
        let Self(state) = self.clone();
        create::finished_job(kind, move |context, finished| run(state.clone(), context, finished))
    }

    /// Like [`dead_letter_job`](super::dead_letter_job).
    pub fn dead_letter_job<R, Fut>(
        &self,
        kind: &str,
        run: impl Fn(S, JobContext, DeadLetter) -> Fut + Send + Sync + 'static,
    ) -> KindHandler
    where
        R: Serialize,
        Fut: Future<Output = Result<R, HandlerError>> + Send + 'static,
    {
        let Self(state) = self.clone();
        create::dead_letter_job(kind, move |context, letter| run(state.clone(), context, letter))
    }

    /// Like [`raw`](super::raw).
    pub fn raw<Fut>(
        &self,
        kind: &str,
        run: impl Fn(S, JobContext) -> Fut + Send + Sync + 'static,
    ) -> KindHandler
    where
        Fut: Future<Output = HandlerResult> + Send + 'static,
    {
        let Self(state) = self.clone();
        create::raw(kind, move |context| run(state.clone(), context))
    }

    /// Like [`blocking_raw`](super::blocking_raw).
    pub fn blocking_raw(
        &self,
        kind: &str,
        run: impl Fn(S, JobContext) -> HandlerResult + Send + Sync + 'static,
    ) -> KindHandler {
        let Self(state) = self.clone();
        create::blocking_raw(kind, move |context| run(state.clone(), context))
    }
}

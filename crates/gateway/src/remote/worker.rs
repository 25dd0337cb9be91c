//! One remote worker: a node of the library in the gateway's process whose handlers wait for calls of a remote process.
//!
//! ```text
//! Starting ──registered──▶ Working ──drain──▶ Draining ──▶ Ended
//!                             └── left, silent, gateway stops ──▶ Ended
//! ```
//!
//! | the remote process | the node | its attempts |
//! | --- | --- | --- |
//! | drains | drains without a time limit | may be finished |
//! | leaves, or the gateway stops | drains without a grace period | handed back without a loss |
//! | makes no call for its timeout | is aborted | lost: they run elsewhere |
//!
//! A process that names its former worker and what it runs takes these attempts over: the node moves them when it registers
//! (`bellwether::node::TakeOver`), and each handler then attaches to the process. The calls of the process wait for that. A
//! handler that has not begun [`ATTACH_WITHIN`] after the move is not awaited any longer: its attempt was closed in between, or
//! it ends without a finish and the job runs again.
//!
//! One task owns the node. The node outlives lost connections and sessions; after a new session it has a new worker id, and
//! the attempts of the old one were stopped.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use aws_lc_rs::digest::{Context, SHA256};
use bellwether::handler::raw;
use bellwether::node::{HeldAttempt, TakeOver, TakenAttempt, WorkerOwner, WorkerState};
use bellwether::{Handlers, Node, NodeBuilder, WorkerId};
use tokio::sync::{Notify, watch};
use uuid::Uuid;

use super::attempt::{self, Attempt};
use super::registry::RemoteWorkers;
use super::settings::Settings;
use super::table::{Id, Instructions, Patience, Reason, Table};

/// The grace period of a drain that the remote process asked for: as long as an attempt may run. The process ends it by
/// leaving.
const DRAIN_GRACE: Duration = Duration::from_secs(7 * 24 * 3_600);

/// A handler begins as soon as the inbox was read: after a few requests to ZooKeeper.
const ATTACH_WITHIN: Duration = Duration::from_secs(10);

/// What a process runs that registers again.
#[derive(Debug, Clone)]
pub(crate) struct Former {
    /// The last worker id that it got.
    pub(crate) worker: WorkerId,
    /// Its attempts.
    pub(crate) held: Vec<HeldAttempt>,
}

/// The takeover of attempts from another gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Adoption {
    /// The attempts are being moved.
    Moving,
    /// They were moved to this worker, and their handlers begin until then.
    Attaching(WorkerId, Instant),
    /// Complete, or there was none.
    Over,
}

/// The state of a remote worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Life {
    /// Not registered: the node is starting, or has lost its session.
    Starting,
    Working(WorkerId),
    /// Its settings were refused.
    Refused(String),
    Ended,
}

/// The last request of the remote process about its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wish {
    Work,
    Drain,
    Leave,
}

/// A remote worker of this gateway.
#[derive(Debug)]
pub(crate) struct RemoteWorker {
    pub(super) key: Uuid,
    /// The name of the token that registered it.
    pub(super) owner: Arc<str>,
    pub(super) settings: Settings,
    /// The worker that the process had before.
    former: Option<WorkerId>,
    state: Mutex<State>,
    /// Wakes waiting polls.
    changed: Notify,
    wish: watch::Sender<Wish>,
    life: watch::Sender<Life>,
}

#[derive(Debug)]
struct State {
    table: Table<Arc<Attempt>>,
    adoption: Adoption,
    /// The worker's ids so far.
    ids: Vec<WorkerId>,
    /// The number of the newest poll. An older one ends.
    poll: u64,
    last_call: Instant,
}

impl RemoteWorker {
    pub(super) fn new(key: Uuid, owner: Arc<str>, settings: Settings, former: Option<&Former>) -> Self {
        let table = Table::new(settings.slots);
        let takes_over = former.is_some_and(|former| !former.held.is_empty());
        let adoption = if takes_over { Adoption::Moving } else { Adoption::Over };
        let state = State { table, adoption, ids: Vec::new(), poll: 0, last_call: Instant::now() };
        Self {
            former: former.map(|former| former.worker),
            key,
            owner,
            settings,
            state: Mutex::new(state),
            changed: Notify::new(),
            wish: watch::Sender::new(Wish::Work),
            life: watch::Sender::new(Life::Starting),
        }
    }

    /// Poison is ignored: a holder of the lock cannot panic between two changes.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The remote process made a call.
    pub(super) fn called(&self) {
        self.state().last_call = Instant::now();
    }

    pub(super) fn begin(&self, id: &Id, attempt: &Arc<Attempt>) -> bool {
        let begun = {
            let mut state = self.state();
            let moved = attempt.context().is_some_and(|context| context.is_taken_over());
            let id = id.clone();
            let begun = if moved {
                state.table.attach(id, Arc::clone(attempt))
            } else {
                state.table.begin(id, Arc::clone(attempt))
            };
            if matches!(state.adoption, Adoption::Attaching(..)) && !state.table.awaits() {
                state.adoption = Adoption::Over;
            }
            begun
        };
        self.changed.notify_waiters();
        begun
    }

    pub(super) fn stop_attempt(&self, id: &Id, reason: Reason) {
        self.state().table.stop(id, reason);
        self.changed.notify_waiters();
    }

    pub(super) fn ended(&self, id: &Id, reason: Reason) {
        self.state().table.ended(id, reason);
        self.changed.notify_waiters();
    }

    /// Waits until the worker is registered, and returns its id.
    ///
    /// # Cancellation
    /// Cancel safe.
    pub(crate) async fn registered(&self) -> Life {
        let mut life = self.life.subscribe();
        // The sender lives as long as `self`.
        let registered = life.wait_for(|life| *life != Life::Starting);
        self.in_call(registered).await.map_or(Life::Ended, |life| life.clone())
    }

    /// Waits until the attempts that the process runs are attached to their handlers, or are known not to be.
    ///
    /// # Cancellation
    /// Cancel safe.
    pub(crate) async fn adopted(&self) {
        let adopted = async {
            loop {
                let mut changed = std::pin::pin!(self.changed.notified());
                // Registered before the look, so that no change is missed.
                changed.as_mut().enable();
                if self.state().adoption == Adoption::Over {
                    return;
                }
                changed.await;
            }
        };
        self.in_call(adopted).await;
    }

    /// Awaits `answer` for a process that waits for it in a call, and therefore is not silent.
    async fn in_call<T>(&self, answer: impl Future<Output = T>) -> T {
        let mut answer = std::pin::pin!(answer);
        loop {
            let answered = tokio::time::timeout(self.settings.session_timeout / 2, answer.as_mut()).await;
            self.called();
            if let Ok(answer) = answered {
                return answer;
            }
        }
    }

    /// Returns the tokens of those of these attempts that were taken over.
    pub(crate) fn fencing_tokens(&self, held: &[Id]) -> Vec<(Id, i32)> {
        let state = self.state();
        held.iter().filter_map(|id| Some((id.clone(), state.table.fencing_token(id)?))).collect()
    }

    /// Whether the process has registered elsewhere since it got this worker: its former worker is another one.
    pub(super) fn is_left_behind(&self, former: Option<&Former>) -> bool {
        let Some(former) = former.map(|former| former.worker) else { return false };
        self.former != Some(former) && !self.state().ids.contains(&former)
    }

    /// The node has moved these attempts to the worker, or has refused them.
    fn taken(&self, worker: WorkerId, taken: Vec<TakenAttempt>) {
        {
            let mut state = self.state();
            for TakenAttempt {
                held: HeldAttempt { job, attempt, fencing_token, .. },
                fencing_token: moved,
            } in taken
            {
                match moved {
                    Ok(new) => {
                        let was = Id { job, attempt, fencing_token };
                        let is = Id { fencing_token: new, ..was.clone() };
                        state.table.take_over(was, is);
                    }
                    Err(refusal) => {
                        tracing::info!(%job, attempt, ?refusal, "the gateway did not take over an attempt of a remote worker");
                    }
                }
            }
            let attaching = Adoption::Attaching(worker, Instant::now() + ATTACH_WITHIN);
            state.adoption = if state.table.awaits() { attaching } else { Adoption::Over };
        }
        self.changed.notify_waiters();
    }

    /// Awaits no handler any longer.
    fn give_up(&self) {
        {
            let mut state = self.state();
            if state.adoption != Adoption::Over {
                tracing::warn!(key = %self.key, "the gateway did not take over all attempts of a remote worker");
            }
            state.adoption = Adoption::Over;
            state.table.give_up();
        }
        self.changed.notify_waiters();
    }

    /// The worker has registered under this id.
    fn working(&self, id: WorkerId) {
        let served_by = {
            let mut state = self.state();
            if !state.ids.contains(&id) {
                state.ids.push(id);
            }
            state.adoption
        };
        match served_by {
            Adoption::Over => {}
            Adoption::Attaching(worker, _) if worker == id => {}
            // The session expired during the takeover, and the next registration has none.
            Adoption::Moving | Adoption::Attaching(..) => self.give_up(),
        }
        self.life.send_replace(Life::Working(id));
    }

    /// Resolves when handlers that should have begun have not.
    async fn unattached(&self) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let until = match self.state().adoption {
                Adoption::Attaching(_, until) => Some(until),
                Adoption::Moving | Adoption::Over => None,
            };
            match until {
                Some(until) if Instant::now() >= until => return,
                Some(until) => {
                    tokio::select! {
                        () = tokio::time::sleep_until(until.into()) => {}
                        () = changed => {}
                    }
                }
                None => changed.await,
            }
        }
    }

    /// Waits until there is news for a worker that runs `running`. A newer poll ends this one with an empty answer.
    ///
    /// # Cancellation
    /// Cancel safe: a lost answer is repaired by the next poll.
    pub(crate) async fn poll(
        &self,
        running: &BTreeSet<Id>,
        wait: Duration,
        mut has_room: impl FnMut(&Arc<Attempt>, usize) -> bool,
    ) -> (Vec<Arc<Attempt>>, Instructions) {
        let until = tokio::time::Instant::now() + wait;
        let turn = {
            let mut state = self.state();
            state.poll += 1;
            state.poll
        };
        self.changed.notify_waiters();
        let mut patience = Patience::Wait;
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Registered before the look, so that no change is missed.
            changed.as_mut().enable();
            {
                let mut state = self.state();
                if state.poll != turn {
                    return (Vec::new(), Instructions { stop: Vec::new(), draining: false });
                }
                let mut taken = 0;
                let room = |attempt: &Arc<Attempt>| {
                    taken += 1;
                    has_room(attempt, taken)
                };
                if let Some(answer) = state.table.poll(running, patience, room) {
                    state.last_call = Instant::now();
                    return answer;
                }
            }
            if tokio::time::timeout_at(until, changed).await.is_err() {
                patience = Patience::Over;
            }
        }
    }

    /// Returns the open attempts of those that the worker runs, and the instructions.
    pub(crate) fn heartbeat(&self, running: &BTreeSet<Id>) -> (Vec<(Id, Arc<Attempt>)>, Instructions) {
        self.state().table.heartbeat(running)
    }

    /// Begins or repeats the finish of an attempt; `None` if the worker does not have it.
    pub(crate) fn finish(&self, id: &Id) -> Option<Arc<Attempt>> {
        self.state().table.finish(id)
    }

    /// Takes no further attempts. The running ones may be finished.
    pub(crate) fn drain(&self) {
        self.state().table.drain();
        self.wish(Wish::Drain);
    }

    /// Deletes the worker: [hands back](Self::hand_back) its running attempts, and answers its open poll.
    ///
    /// # Cancellation
    /// The worker leaves nevertheless.
    pub(crate) async fn leave(&self) {
        self.state().table.drain();
        self.hand_back().await;
    }

    /// Hands back the running attempts and ends. Returns when the worker is deregistered. The remote process is not asked to drain: if
    /// the gateway stops, the process registers with another gateway, or with this one after its restart.
    ///
    /// # Cancellation
    /// The worker ends nevertheless.
    pub(super) async fn hand_back(&self) {
        self.wish(Wish::Leave);
        let mut life = self.life.subscribe();
        // The sender lives as long as `self`, so the wait ends with the last state.
        if life.wait_for(|life| matches!(life, Life::Ended | Life::Refused(_))).await.is_err() {
            tracing::debug!(key = %self.key, "the gateway dropped the remote worker");
        }
    }

    fn wish(&self, wish: Wish) {
        self.wish.send_modify(|present| *present = wish.max(*present));
        self.changed.notify_waiters();
    }

    /// Resolves when the remote process has made no call for its session timeout.
    async fn silence(&self) {
        loop {
            let until = self.state().last_call + self.settings.session_timeout;
            if Instant::now() >= until {
                return;
            }
            tokio::time::sleep_until(until.into()).await;
        }
    }

    /// Runs the worker until it has ended.
    pub(super) async fn live(
        self: Arc<Self>,
        node: NodeBuilder,
        former: Option<Former>,
        registry: RemoteWorkers,
    ) {
        let last = match self.node(node, former).start().await {
            Ok(node) => {
                self.attend(&node).await;
                Life::Ended
            }
            Err(error) => Life::Refused(bellwether::error::chain(&error)),
        };
        registry.forget(&self);
        self.give_up();
        self.life.send_replace(last);
        self.changed.notify_waiters();
    }

    fn node(self: &Arc<Self>, node: NodeBuilder, former: Option<Former>) -> NodeBuilder {
        let node = node.worker_owner(process(self.key, &self.owner));
        let node = match former {
            None => node,
            Some(Former { worker, held }) if held.is_empty() => node.former_worker(worker),
            Some(Former { worker, held }) => {
                let remote = Arc::clone(self);
                let take_over = TakeOver::new(worker, held, move |worker, taken| remote.taken(worker, taken));
                node.former_worker(worker).take_over(take_over)
            }
        };
        let Settings { node_id, kinds, slots, tags, session_timeout: _ } = &self.settings;
        let handlers = kinds.iter().fold(Handlers::new(), |handlers, kind| {
            let worker = Arc::clone(self);
            let mut handler =
                raw(kind.kind.as_str(), move |context| attempt::run(Arc::clone(&worker), context));
            if let Some(lease) = kind.lease {
                handler = handler.lease(lease);
            }
            if let Some(concurrency) = kind.concurrency {
                handler = handler.concurrency(concurrency);
            }
            handlers.add(handler)
        });
        let node = node.candidate(false).node_id(node_id.as_str()).handlers(handlers).slots(*slots);
        node.tags(tags.iter().map(bellwether::Tag::as_str))
    }

    async fn attend(&self, node: &Node) {
        let (mut states, mut wishes) = (node.watch_worker(), self.wish.subscribe());
        let mut drains = false;
        loop {
            let wish = *wishes.borrow_and_update();
            match wish {
                Wish::Work => {}
                Wish::Drain if drains => {}
                Wish::Drain => {
                    drains = true;
                    let node = node.clone();
                    tokio::spawn(async move { node.stop_within(DRAIN_GRACE).await });
                }
                Wish::Leave => {
                    node.stop_within(Duration::ZERO).await;
                    return;
                }
            }
            tokio::select! {
                state = states.changed() => match state {
                    Some(WorkerState::Serving(id)) => self.working(id),
                    Some(WorkerState::Draining(id)) => {
                        self.working(id);
                        // An operator may have asked for it.
                        self.state().table.drain();
                        self.changed.notify_waiters();
                    }
                    // Drained: the remote process learns it and leaves.
                    Some(WorkerState::Drained) => self.state().table.drain(),
                    None if drains => return self.idle(&mut wishes).await,
                    // The namespace was refused, or the node's actors failed: the log names the reason.
                    None => return,
                    // Away, between two sessions.
                    Some(_) => {
                        self.life.send_replace(Life::Starting);
                    }
                },
                () = self.unattached() => self.give_up(),
                changed = wishes.changed() => if changed.is_err() { return },
                () = self.silence() => {
                    let (key, timeout) = (self.key, self.settings.session_timeout);
                    tracing::warn!(%key, node = %self.settings.node_id, ?timeout,
                        "the remote worker made no call for its session timeout: its attempts are lost");
                    node.abort().await;
                    return;
                }
            }
        }
    }

    /// Waits after a completed drain until the remote process leaves or is silent.
    async fn idle(&self, wishes: &mut watch::Receiver<Wish>) {
        tokio::select! {
            _left = wishes.wait_for(|wish| *wish == Wish::Leave) => {}
            () = self.silence() => {}
        }
    }
}

/// The owner of the workers of a process: only the process and the gateways that it has called know its key. Another caller
/// than the one that registered the former worker has another owner.
fn process(key: Uuid, caller: &str) -> WorkerOwner {
    let mut digest = Context::new(&SHA256);
    digest.update(b"bellwether remote worker\0");
    digest.update(key.as_bytes());
    digest.update(caller.as_bytes());
    let mut owner = [0; 16];
    // As many bits as the key has.
    let digest = digest.finish();
    owner.iter_mut().zip(digest.as_ref()).for_each(|(to, from)| *to = *from);
    WorkerOwner(owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_process_that_waits_for_its_registration_is_not_silent() {
        let session_timeout = Duration::from_millis(100);
        let node_id = bellwether::NodeId::new("test").unwrap();
        let settings = Settings { node_id, kinds: Vec::new(), slots: 1, tags: Vec::new(), session_timeout };
        let worker = RemoteWorker::new(Uuid::from_u128(1), "ci".into(), settings, None);
        tokio::select! {
            biased;
            life = worker.registered() => panic!("nothing registers the worker: {life:?}"),
            () = worker.silence() => panic!("the process waits for an answer"),
            () = tokio::time::sleep(3 * session_timeout) => {}
        }
        // The call ended without an answer, so the process may be dead.
        tokio::time::timeout(Duration::from_secs(10), worker.silence()).await.expect("the process is silent");
    }

    #[test]
    fn a_worker_belongs_to_the_key_and_to_the_caller_that_registered_it() {
        let (key, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        assert_eq!(process(key, "ci"), process(key, "ci"));
        assert_ne!(process(key, "ci"), process(other, "ci"));
        assert_ne!(process(key, "ci"), process(key, "mail"));
    }
}

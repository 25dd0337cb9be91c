//! Runs any concern as a ractor actor.

use std::future::{Future, ready};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use bellwether_actors::session::{Made, SessionEvent as ToConcern};
use bellwether_actors::{
    Answer, Ask, Commit, Concern, Context, Mail, Out, Paused, Source, Sources, Stamp, Trust, last_will,
};
use bellwether_core::outcome::Outcome;
use bellwether_core::port::Transaction;
use bellwether_core::txn::Op;
use bellwether_zk::Zk;
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::runtime::Handle;

use crate::clock;
use crate::feed;
use crate::session::SessionEvent;
use crate::task::{Owned, Then, after, period, report, tell};

/// Connects a concern to its neighbours.
pub(crate) trait Hosting: Concern {
    /// The concern's neighbours, and the state that its effects need.
    type Links: Send + 'static;

    /// Whether the concern has children, whose ends are messages to it.
    #[cfg_attr(not(feature = "testing"), expect(dead_code, reason = "read by the fault probe"))]
    const SUPERVISES: bool = false;

    /// Carries out one [`Out::Tell`]; `zk` is the concern's current session. Only supervisors await here, because they
    /// start and stop children.
    ///
    /// # Errors
    /// An error ends the actor and is reported to its supervisor.
    fn tell(
        links: &mut Self::Links,
        zk: Option<&Zk>,
        me: &Ref<Self>,
        tell: Self::Tell,
    ) -> impl Future<Output = Result<(), ActorProcessingErr>> + Send;

    /// Informs the concern that an actor has ended unexpectedly, if it is one of its current children.
    fn ended(
        &mut self,
        _: &mut Context<'_, Self>,
        _: &Self::Links,
        _: &ActorCell,
        _: Result<String, ActorProcessingErr>,
    ) {
    }

    /// Stops the children, in order. The session is the concern's current session.
    fn stop(_: &mut Self::Links, _: &mut Option<Zk>) -> impl Future<Output = ()> + Send {
        ready(())
    }
}

/// A message to a hosted concern.
pub(crate) enum Letter<C: Concern> {
    /// To the concern.
    Mail(Mail<C::Msg, C::Key>),
    /// A new session, which all later requests use, and the message that announces it.
    Session(Zk, C::Msg),
}

/// A hosted concern.
pub(crate) type Ref<C> = ActorRef<Letter<C>>;

/// Sends a message to a hosted concern.
pub(crate) fn send<C: Hosting>(to: &Ref<C>, msg: C::Msg) {
    tell(to, Letter::Mail(msg.into()));
}

/// A session event as a message to a concern.
pub(crate) fn session<C: Concern>(event: SessionEvent, msg: impl FnOnce(ToConcern) -> C::Msg) -> Letter<C> {
    let event = match event {
        SessionEvent::Connected { zk, failover } => {
            let (session, timeout) = (zk.session_id(), zk.session_timeout());
            let made = Made { session, timeout, failover, clock: None };
            return Letter::Session(zk, msg(made.connected()));
        }
        SessionEvent::Disconnected { .. } => ToConcern::Disconnected,
        SessionEvent::Reconnected => ToConcern::Reconnected,
        SessionEvent::Expired => ToConcern::Expired,
        SessionEvent::Clock { agrees } => ToConcern::Clock { agrees },
    };
    Letter::Mail(msg(event).into())
}

/// The actor of a concern.
pub(crate) struct Hosted<C>(PhantomData<fn() -> C>);

impl<C> Hosted<C> {
    pub(crate) const fn new() -> Self {
        Self(PhantomData)
    }
}

#[cfg(feature = "testing")]
impl<C: Hosting> crate::testing::Probed for Hosted<C> {
    const NAME: &'static str = C::NAME;
    const SUPERVISES: bool = C::SUPERVISES;
}

#[cfg(feature = "testing")]
impl<C: Hosting> bellwether_actors::Kinds for Letter<C> {
    fn all() -> Vec<bellwether_actors::Kind> {
        C::Msg::all()
    }

    fn kind(&self) -> bellwether_actors::Kind {
        match self {
            Self::Mail(mail) => mail.kind(),
            Self::Session(_, msg) => msg.kind(),
        }
    }
}

/// The arguments of a hosted concern.
pub(crate) struct Args<C: Hosting> {
    /// The concern's session; `None` for a concern that receives its sessions later, or sends no requests.
    pub(crate) zk: Option<Zk>,
    /// The concern's neighbours.
    pub(crate) links: C::Links,
    /// The concern's own arguments.
    pub(crate) args: C::Args,
    /// Whether the concern may send requests now. If not, the host refuses them ([`bellwether_actors::Paused`]).
    pub(crate) may_send: MaySend,
}

/// Decides whether a concern may send requests.
pub(crate) type MaySend = Box<dyn Fn() -> bool + Send>;

/// The decision for concerns that are not members of a leader: they belong to no term that pauses.
pub(crate) fn always() -> MaySend {
    Box::new(|| true)
}

pub(crate) struct State<C: Hosting> {
    concern: C,
    hands: Hands<C>,
}

/// The host's part of the actor's state.
struct Hands<C: Hosting> {
    zk: Option<Zk>,
    links: C::Links,
    may_send: MaySend,
    rng: fastrand::Rng,
    out: Vec<Out<C>>,
    /// The current timers and watches, each with its task.
    sources: Sources<C::Key, Owned>,
    will: Option<Vec<Op>>,
}

impl<C: Hosting> Drop for Hands<C> {
    fn drop(&mut self) {
        if let (Some(ops), Some(zk), Ok(runtime)) = (self.will.take(), self.zk.take(), Handle::try_current())
        {
            runtime.spawn(last_will::carry_out(Arc::new(zk), ops, tokio::time::sleep));
        }
    }
}

impl<C: Hosting> Actor for Hosted<C> {
    type Msg = Letter<C>;
    type State = State<C>;
    type Arguments = Args<C>;

    async fn pre_start(&self, me: Ref<C>, args: Args<C>) -> Result<State<C>, ActorProcessingErr> {
        let Args { zk, links, args, may_send } = args;
        let mut hands = Hands {
            zk,
            links,
            may_send,
            rng: fastrand::Rng::new(),
            out: Vec::new(),
            sources: Sources::default(),
            will: None,
        };
        let concern = C::start(&mut hands.context(), args);
        hands.carry_out(&me).await?;
        Ok(State { concern, hands })
    }

    async fn handle(
        &self,
        me: Ref<C>,
        letter: Letter<C>,
        state: &mut State<C>,
    ) -> Result<(), ActorProcessingErr> {
        let State { concern, hands } = state;
        let msg = match letter {
            Letter::Mail(mail) if hands.sources.accepts(mail.stamp.as_ref()) => mail.msg,
            // From a timer or a watch that was replaced.
            Letter::Mail(_) => return Ok(()),
            Letter::Session(zk, msg) => {
                hands.zk = Some(zk);
                msg
            }
        };
        concern.handle(&mut hands.context(), msg);
        hands.carry_out(&me).await
    }

    async fn handle_supervisor_evt(
        &self,
        me: Ref<C>,
        event: SupervisionEvent,
        state: &mut State<C>,
    ) -> Result<(), ActorProcessingErr> {
        let State { concern, hands } = state;
        let (who, how) = match event {
            SupervisionEvent::ActorFailed(who, error) => (who, Err(error)),
            SupervisionEvent::ActorTerminated(who, _, reason) => (who, Ok(reason.unwrap_or_default())),
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => return Ok(()),
        };
        let (mut cx, links) = hands.context_and_links();
        concern.ended(&mut cx, links, &who, how);
        hands.carry_out(&me).await
    }

    async fn post_stop(&self, _: Ref<C>, state: &mut State<C>) -> Result<(), ActorProcessingErr> {
        C::stop(&mut state.hands.links, &mut state.hands.zk).await;
        Ok(())
    }
}

impl<C: Hosting> Hands<C> {
    fn context(&mut self) -> Context<'_, C> {
        self.context_and_links().0
    }

    fn context_and_links(&mut self) -> (Context<'_, C>, &C::Links) {
        let trust = |zk: &Zk| Trust { session: zk.session_id(), until: zk.trusted_until() };
        let (now, local) = (clock::now(), clock::local());
        let context = Context {
            now,
            wall: self.zk.as_ref().map_or(local, |zk| zk.wall(now, local)),
            local,
            trust: self.zk.as_ref().map(trust),
            rng: &mut self.rng,
            out: &mut self.out,
        };
        (context, &self.links)
    }

    async fn carry_out(&mut self, me: &Ref<C>) -> Result<(), ActorProcessingErr> {
        let mut outputs = std::mem::take(&mut self.out);
        for out in outputs.drain(..) {
            match out {
                Out::Ask(ask) if !(self.may_send)() => answer(me, ask.refuse()),
                Out::Task(task) if !(self.may_send)() => report(task(Arc::new(Paused)), answered(me)),
                Out::Ask(ask) => match &self.zk {
                    Some(zk) => request(zk, me, ask),
                    None => debug_assert!(false, "{} asks without a session", C::NAME),
                },
                Out::Task(task) => match &self.zk {
                    Some(zk) => report(task(Arc::new(zk.clone())), answered(me)),
                    None => debug_assert!(false, "{} asks without a session", C::NAME),
                },
                Out::Watch(key, path, heard) => {
                    let Some(zk) = &self.zk else { continue };
                    let stamp = self.sources.stamp(Source::Watch(key));
                    let (from, to) = (stamp.clone(), me.clone());
                    let heard = move |feed| stamped(&to, &from, Some(heard(feed)));
                    // The new watch is requested before the old one is dropped.
                    self.sources.set(stamp, feed::watch(zk, path, Box::new(heard)));
                }
                Out::Glance(key, path, exists, changed) => {
                    let Some(zk) = &self.zk else { continue };
                    let stamp = self.sources.stamp(Source::Watch(key));
                    let (from, to) = (stamp.clone(), me.clone());
                    let exists = move |there| stamped(&to, &from, exists(there));
                    let (from, to) = (stamp.clone(), me.clone());
                    let changed = move |()| stamped(&to, &from, Some(changed));
                    self.sources.set(stamp, feed::glance(zk, path, Box::new(exists), Box::new(changed)));
                }
                Out::Unwatch(key) => self.sources.remove(&Source::Watch(key)),
                Out::After(key, wait, msg) => self.timer(me, key, wait, msg),
                Out::Sweep(key, every, msg) => self.timer(me, key, period(every), msg),
                Out::Disarm(key) => self.sources.remove(&Source::Timer(key)),
                Out::Will(ops) => self.will = ops,
                Out::Tell(tell) => C::tell(&mut self.links, self.zk.as_ref(), me, tell).await?,
            }
        }
        // Reuse the allocation: most messages have at least one output.
        self.out = outputs;
        Ok(())
    }

    fn timer(&mut self, me: &Ref<C>, key: C::Key, wait: Duration, msg: C::Msg) {
        let stamp = self.sources.stamp(Source::Timer(key));
        let (from, to) = (stamp.clone(), me.clone());
        let fire = move |()| stamped(&to, &from, Some(msg));
        self.sources.set(stamp, after(wait, Box::new(fire)));
    }
}

/// Sends a message of a timer or a watch.
fn stamped<C: Hosting>(to: &Ref<C>, stamp: &Stamp<C::Key>, msg: Option<C::Msg>) {
    if let Some(msg) = msg {
        tell(to, Letter::Mail(Mail::stamped(stamp.clone(), msg)));
    }
}

/// Sends the message that an answer became, if the concern needs it.
fn answer<C: Hosting>(to: &Ref<C>, msg: Option<C::Msg>) {
    if let Some(msg) = msg {
        send(to, msg);
    }
}

fn answered<C: Hosting>(to: &Ref<C>) -> Then<Option<C::Msg>> {
    let to = to.clone();
    Box::new(move |msg| answer(&to, msg))
}

/// Sends a request now. Its answer arrives as a message.
fn request<C: Hosting>(zk: &Zk, me: &Ref<C>, ask: Ask<C::Msg>) {
    fn then<A: 'static, C: Hosting>(to: Ref<C>, then: Answer<A, C::Msg>) -> Then<A> {
        Box::new(move |read| answer(&to, then(read)))
    }
    let to = me.clone();
    match ask {
        Ask::Commit(commit) => {
            let sent = Sent(Box::new(Addressed { commit, to }));
            report(zk.commit_of(sent), Box::new(|(Sent(sent), outcome)| sent.answered(outcome)));
        }
        Ask::Get(path, answer) => report(zk.get(path), then(to, answer)),
        Ask::Children(path, answer) => report(zk.children(path), then(to, answer)),
        Ask::GetMany(paths, answer) => report(zk.get_many(paths), then(to, answer)),
        Ask::ChildrenMany(paths, answer) => report(zk.children_many(paths), then(to, answer)),
    }
}

/// A transaction that was sent, without the type of the concern that waits for its outcome.
struct Sent(Box<dyn Waiting>);

trait Waiting: Transaction + Send {
    fn answered(self: Box<Self>, outcome: Outcome<()>);
}

impl Transaction for Sent {
    fn ops(&self) -> Box<dyn Iterator<Item = &Op> + '_> {
        self.0.ops()
    }
}

struct Addressed<C: Hosting> {
    commit: Box<dyn Commit<C::Msg>>,
    to: Ref<C>,
}

impl<C: Hosting> Transaction for Addressed<C> {
    fn ops(&self) -> Box<dyn Iterator<Item = &Op> + '_> {
        self.commit.ops()
    }
}

impl<C: Hosting> Waiting for Addressed<C> {
    fn answered(self: Box<Self>, outcome: Outcome<()>) {
        let Self { commit, to } = *self;
        answer(&to, commit.answered(outcome));
    }
}

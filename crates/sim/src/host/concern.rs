//! Runs a concern in virtual time. The world carries out its outputs in their order.

use std::sync::Arc;
use std::time::Duration;

use bellwether_actors::{
    Answer, Ask, Concern, Context as Hands, Feed, Mail, Out as Want, Paused, Source, Sources, Stamp, Trust,
    last_will,
};
use bellwether_core::path;
use bellwether_core::port::{Change, ChangeKind};
use bellwether_core::time::Millis;
use bellwether_core::txn::Op;
use bellwether_keeper::proto::{EventKind, Request, WatchedEvent};

use super::context::{Context, Out};
use super::{Msg, requests};
use crate::zk::Zk;
use crate::zk::protocol;

/// How this host connects a concern to its neighbours.
pub(crate) trait Hosting: Concern {
    /// The address of one instance, for messages to it and to its neighbours.
    type Address: Copy + 'static;

    /// Its children, and the state that its effects need.
    type Links;

    /// The epoch of a member of the leader wing. It sends requests only while its process may act as the leader of this epoch.
    fn epoch(_: Self::Address) -> Option<i32> {
        None
    }

    /// Wraps a message to it.
    fn mail(address: Self::Address, mail: Mail<Self::Msg, Self::Key>) -> Msg;

    /// Carries out one `Tell`. `zk` is the concern's current session.
    fn tell(
        links: &mut Self::Links,
        address: Self::Address,
        zk: Option<Zk>,
        cx: &mut Context<'_>,
        tell: Self::Tell,
    );
}

/// A message to a concern that uses sessions.
pub(crate) enum Letter<M, K> {
    Mail(Mail<M, K>),
    /// A new session, which the concern's requests use from now on, and the message that announces it.
    Session(Zk, M),
}

/// A concern on this host.
pub(crate) struct Hosted<C: Hosting> {
    concern: C,
    pub(crate) links: C::Links,
    address: C::Address,
    zk: Option<Zk>,
    sources: Sources<C::Key, ()>,
    will: Option<Vec<Op>>,
}

impl<C: Hosting> Hosted<C> {
    pub(crate) fn start(cx: &mut Context<'_>, zk: Option<Zk>, address: C::Address, args: C::Args) -> Self
    where
        C: Hosting<Links = ()>,
    {
        Self::supervise(cx, zk, address, (), args)
    }

    /// Like [`Hosted::start`], for a concern with children.
    pub(crate) fn supervise(
        cx: &mut Context<'_>,
        zk: Option<Zk>,
        address: C::Address,
        links: C::Links,
        args: C::Args,
    ) -> Self {
        let mut wants = Vec::new();
        let concern = C::start(&mut hands(cx, zk, &mut wants), args);
        let mut hosted = Self { concern, links, address, zk, sources: Sources::default(), will: None };
        hosted.carry_out(cx, wants);
        hosted
    }

    pub(crate) fn handle(&mut self, cx: &mut Context<'_>, mail: Mail<C::Msg, C::Key>) {
        if self.sources.accepts(mail.stamp.as_ref()) {
            let mut wants = Vec::new();
            self.concern.handle(&mut hands(cx, self.zk, &mut wants), mail.msg);
            self.carry_out(cx, wants);
        }
    }

    pub(crate) fn take(&mut self, cx: &mut Context<'_>, letter: Letter<C::Msg, C::Key>) {
        match letter {
            Letter::Mail(mail) => self.handle(cx, mail),
            Letter::Session(zk, msg) => {
                self.zk = Some(zk);
                self.handle(cx, msg.into());
            }
        }
    }

    /// Calls the concern outside a message, for example when a child has ended.
    pub(crate) fn act(&mut self, cx: &mut Context<'_>, act: impl FnOnce(&mut C, &mut Hands<'_, C>)) {
        let mut wants = Vec::new();
        act(&mut self.concern, &mut hands(cx, self.zk, &mut wants));
        self.carry_out(cx, wants);
    }

    pub(crate) fn address(&self) -> C::Address {
        self.address
    }

    /// Ends the concern for any reason: its will is committed. Its children are returned.
    pub(crate) fn end(self, cx: &mut Context<'_>) -> C::Links {
        if let (Some(zk), Some(ops)) = (self.zk, self.will) {
            cx.begin(move |env| async move {
                last_will::carry_out(env.session(zk), ops, |wait| env.sleep(wait)).await;
            });
        }
        self.links
    }

    fn carry_out(&mut self, cx: &mut Context<'_>, wants: Vec<Want<C>>) {
        let address = self.address;
        let may_send = C::epoch(address).is_none_or(|epoch| cx.leads_in == Some(epoch));
        for want in wants {
            match (want, self.zk) {
                (Want::Ask(ask), _) if !may_send => {
                    cx.after(Duration::ZERO, answer::<C>(address, ask.refuse()));
                }
                (Want::Task(task), Some(_)) if !may_send => {
                    cx.begin(move |env| async move {
                        env.tell(answer::<C>(address, task(Arc::new(Paused)).await));
                    });
                }
                (Want::Ask(ask), Some(zk)) => request::<C>(cx, zk, address, ask),
                (Want::Task(task), Some(zk)) => {
                    requests::begin(cx, zk, task, move |msg| answer::<C>(address, msg))
                }
                (Want::Watch(key, path, heard), Some(zk)) => {
                    let stamp = self.stamp(Source::Watch(key));
                    let mail = move |feed| C::mail(address, Mail::stamped(stamp.clone(), heard(feed)));
                    let watching = mail.clone();
                    let set = move |set: bool| if set { watching(Feed::Watching) } else { Msg::Nothing };
                    let changed = move |event: &WatchedEvent| match change(event) {
                        Some(change) => mail(Feed::Changes(vec![change])),
                        None => Msg::Nothing,
                    };
                    cx.watch(zk, &path, set, changed);
                }
                (Want::Glance(key, path, exists, changed), Some(zk)) => {
                    let stamp = self.stamp(Source::Watch(key));
                    let mail = move |msg| C::mail(address, Mail::stamped(stamp.clone(), msg));
                    let told = mail.clone();
                    let there = move |answer| exists(protocol::found(answer)).map_or(Msg::Nothing, told);
                    let changed = move || mail(changed);
                    cx.out.push(Out::Glance { zk, path, there: Box::new(there), changed: Box::new(changed) });
                }
                (Want::Unwatch(key), _) => self.sources.remove(&Source::Watch(key)),
                (Want::Ask(_) | Want::Task(_) | Want::Watch(..) | Want::Glance(..), None) => {
                    unreachable!("{} makes a request without a session", C::NAME)
                }
                (Want::After(key, wait, msg) | Want::Sweep(key, wait, msg), _) => {
                    let stamp = self.stamp(Source::Timer(key));
                    cx.after(wait, C::mail(address, Mail::stamped(stamp, msg)));
                }
                (Want::Disarm(key), _) => self.sources.remove(&Source::Timer(key)),
                (Want::Will(ops), _) => self.will = ops,
                (Want::Tell(tell), zk) => C::tell(&mut self.links, address, zk, cx, tell),
            }
        }
    }

    /// The stamp of a new timer or watch, which replaces the one with its key.
    fn stamp(&mut self, source: Source<C::Key>) -> Stamp<C::Key> {
        let stamp = self.sources.stamp(source);
        self.sources.set(stamp.clone(), ());
        stamp
    }
}

fn hands<'a, C: Concern>(cx: &'a mut Context<'_>, zk: Option<Zk>, out: &'a mut Vec<Want<C>>) -> Hands<'a, C> {
    let view = cx.view;
    let until = Millis(view.trusted_until_us() / 1_000);
    let trust = zk.filter(|zk| zk.0 == view.generation).map(|_| Trust { session: view.session, until });
    Hands { now: cx.now(), wall: cx.wall(), local: cx.local(), trust, rng: &mut *cx.rng, out }
}

/// Converts an answer to a message, if the concern waits for it.
fn answer<C: Hosting>(address: C::Address, msg: Option<C::Msg>) -> Msg {
    msg.map_or(Msg::Nothing, |msg| C::mail(address, msg.into()))
}

fn request<C: Hosting>(cx: &mut Context<'_>, zk: Zk, address: C::Address, ask: Ask<C::Msg>) {
    fn read<C: Hosting, A: 'static>(
        cx: &mut Context<'_>,
        zk: Zk,
        address: C::Address,
        request: Request,
        decode: fn(protocol::Answer) -> A,
        then: Answer<A, C::Msg>,
    ) {
        cx.ask(zk, request, move |answered| answer::<C>(address, then(decode(answered))));
    }
    match ask {
        Ask::Commit(commit) => {
            if let Some(Op::Check { path, version }) = commit.ops().next()
                && C::epoch(address).is_some()
                && path == path::EPOCH
            {
                cx.leader_writes(*version);
            }
            if commit.ops().any(needs_container) {
                cx.begin(move |env| async move {
                    let outcome = env.session(zk).commit(commit.ops().cloned().collect()).await;
                    env.tell(answer::<C>(address, commit.answered(outcome)));
                });
                return;
            }
            let request = protocol::commit(commit.ops());
            cx.ask(zk, request, move |answered| {
                answer::<C>(address, commit.answered(protocol::written(answered)))
            });
        }
        Ask::Get(path, then) => read::<C, _>(cx, zk, address, protocol::get(path), protocol::got, then),
        Ask::Children(path, then) => {
            read::<C, _>(cx, zk, address, protocol::children(path), protocol::listed, then)
        }
        Ask::GetMany(paths, then) => {
            read::<C, _>(cx, zk, address, protocol::get_many(paths), protocol::got_many, then)
        }
        Ask::ChildrenMany(paths, then) => {
            read::<C, _>(cx, zk, address, protocol::children_many(paths), protocol::listed_many, then);
        }
    }
}

fn needs_container(op: &Op) -> bool {
    matches!(op, Op::Create { path, .. } if path::container_of(path).is_some())
}

pub(crate) fn change(event: &WatchedEvent) -> Option<Change> {
    let kind = match event.kind {
        EventKind::NodeCreated => ChangeKind::Created,
        EventKind::NodeDeleted => ChangeKind::Deleted,
        EventKind::NodeDataChanged => ChangeKind::DataChanged,
        EventKind::NodeChildrenChanged | EventKind::PersistentWatchRemoved => return None,
    };
    Some(Change { place: path::parse(&event.path), kind })
}

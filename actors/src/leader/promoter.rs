//! The promoter: moves delayed jobs to the queue when they are due.

use bellwether_core::chain::chain;
use bellwether_core::job::QueueEntry;
use bellwether_core::machine::promoter::{self, DelayedKey, Effect, Event};
use bellwether_core::machine::worker::Lookup;
use bellwether_core::metric;
use bellwether_core::outcome::Outcome;
use bellwether_core::path;
use bellwether_core::port::{ChangeKind, Node, ReadResult};
use bellwether_core::txn::Batch;
use metrics::gauge;

use super::alarm::Alarm;
use super::{FencedOut, SWEEP};
use crate::unreadable::Unreadable;
use crate::{Concern, Context, Feed};

/// The watch and the timers of the promoter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// The watch on the delayed entries.
    Delayed,
    /// The periodic listing.
    Sweep,
    /// The time of the next entry.
    Due,
}

/// Moves delayed jobs to the queue, in one term.
pub struct Promoter {
    machine: promoter::Promoter,
    unreadable: Unreadable,
    alarm: Alarm<Key>,
}

/// Messages to the promoter.
pub enum PromoterMsg {
    /// The term is active again.
    Resume,
    /// The next entry may be due.
    Tick,
    /// From the watch on the delayed entries.
    Feed(Feed),
    /// The minutes with entries.
    Minutes(ReadResult<Vec<u64>>),
    /// The entries of a minute.
    Listed(ReadResult<Vec<DelayedKey>>),
    /// The entries that were read, or the keys whose read was not answered.
    Read(Result<Vec<(DelayedKey, Lookup<QueueEntry>)>, Vec<DelayedKey>>),
    /// The outcome of a promotion.
    Committed(Batch<DelayedKey>, Outcome<()>),
    /// The periodic listing is due.
    Sweep,
}

kinds!(PromoterMsg { Resume, Tick, Feed => Feed, Minutes, Listed, Read, Committed, Sweep });

impl Concern for Promoter {
    const NAME: &'static str = "promoter";
    type Msg = PromoterMsg;
    /// The epoch of the term.
    type Args = i32;
    type Key = Key;
    type Tell = FencedOut;

    fn start(cx: &mut Context<'_, Self>, epoch: i32) -> Self {
        watch(cx);
        cx.sweep(Key::Sweep, SWEEP, PromoterMsg::Sweep);
        let alarm = Alarm::start(cx, Key::Due, PromoterMsg::Tick);
        Self { machine: promoter::Promoter::new(epoch), unreadable: Unreadable::default(), alarm }
    }

    fn handle(&mut self, cx: &mut Context<'_, Self>, msg: PromoterMsg) {
        let event = match msg {
            PromoterMsg::Resume => return watch(cx),
            PromoterMsg::Sweep => {
                self.feed(cx, Event::Resync);
                return cx.sweep(Key::Sweep, SWEEP, PromoterMsg::Sweep);
            }
            PromoterMsg::Tick => Event::Tick,
            PromoterMsg::Feed(Feed::Watching) => Event::Resync,
            PromoterMsg::Feed(Feed::Changes(changes)) => {
                for change in changes {
                    let path::Place::DelayedEntry(delay, job) = change.place else { continue };
                    self.feed(
                        cx,
                        match change.kind {
                            ChangeKind::Created => Event::Seen((delay, job)),
                            ChangeKind::DataChanged => Event::Changed((delay, job)),
                            ChangeKind::Deleted => Event::Gone((delay, job)),
                        },
                    );
                }
                return;
            }
            PromoterMsg::Minutes(Ok(minutes)) => Event::Minutes(minutes),
            PromoterMsg::Listed(Ok(keys)) => {
                return keys.into_iter().for_each(|key| self.feed(cx, Event::Seen(key)));
            }
            // The next reconnect or sweep lists again.
            PromoterMsg::Minutes(Err(error)) | PromoterMsg::Listed(Err(error)) => {
                return tracing::debug!(error = %chain(&error), "the leader cannot list the delayed jobs");
            }
            PromoterMsg::Read(Ok(looks)) => {
                let unreadable = &mut self.unreadable;
                let path = |(delay, job): &DelayedKey| path::delayed_entry(*delay, job);
                let entry = |(key, look)| (unreadable.readable(|| path(&key), look), key);
                Event::Read(looks.into_iter().map(entry).map(|(entry, key)| (key, entry)).collect())
            }
            PromoterMsg::Read(Err(keys)) => Event::ReadFailed(keys),
            PromoterMsg::Committed(batch, outcome) => Event::Committed(batch, outcome),
        };
        self.feed(cx, event);
    }
}

fn watch(cx: &mut Context<'_, Promoter>) {
    cx.watch(Key::Delayed, path::DELAYED.into(), PromoterMsg::Feed);
}

impl Promoter {
    fn feed(&mut self, cx: &mut Context<'_, Self>, event: Event) {
        let ticked = event == Event::Tick;
        let mut effects = Vec::new();
        self.machine.handle(cx.wall, event, &mut effects);
        for effect in effects {
            match effect {
                Effect::ListMinutes => cx.children(path::DELAYED.into(), |listed| {
                    PromoterMsg::Minutes(listed.map(|names| parsed(names, path::parse_minute)))
                }),
                Effect::List(minute) => cx.children(path::delayed_minute(minute), move |listed| {
                    PromoterMsg::Listed(
                        listed.map(|names| parsed(names, |name| path::parse_delayed(minute, name))),
                    )
                }),
                Effect::Read(keys) => {
                    let paths = keys.iter().map(|(delay, job)| path::delayed_entry(*delay, job));
                    cx.get_many(paths.collect(), move |nodes| {
                        PromoterMsg::Read(match nodes {
                            Ok(nodes) => Ok(keys.into_iter().zip(nodes.iter().map(Node::look)).collect()),
                            Err(_) => Err(keys),
                        })
                    });
                }
                Effect::Commit(batch) => cx.commit_batch(batch, PromoterMsg::Committed),
                Effect::FencedOut => cx.tell(FencedOut),
            }
        }
        self.alarm.set(cx, self.machine.next_due(), ticked, PromoterMsg::Tick);
        #[expect(clippy::cast_precision_loss, reason = "a gauge is a float, and no count comes near 2^53")]
        gauge!(metric::DELAYED_JOBS_IN_HORIZON).set(self.machine.len() as f64);
    }
}

fn parsed<T>(names: Option<Vec<String>>, parse: impl Fn(&str) -> Option<T>) -> Vec<T> {
    names.iter().flatten().filter_map(|name| parse(name)).collect()
}

//! An entry of a concern's mailbox: a message, and the stamp of the timer or watch that sent it. A message is dropped
//! here if its timer or watch was replaced while the message was in the mailbox.

use std::collections::BTreeMap;

/// Identifies the timer or watch that sent a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stamp<K> {
    /// The timer with this key and number.
    Timer(K, u32),
    /// The watch with this key and number.
    Watch(K, u32),
}

/// A message in a mailbox.
pub struct Mail<M, K> {
    /// The sender's stamp; `None` for messages of neighbours and for answers.
    pub stamp: Option<Stamp<K>>,
    /// The message.
    pub msg: M,
}

impl<M, K> From<M> for Mail<M, K> {
    fn from(msg: M) -> Self {
        Self { stamp: None, msg }
    }
}

impl<M, K> Mail<M, K> {
    /// A message of a timer or a watch.
    pub fn stamped(stamp: Stamp<K>, msg: M) -> Self {
        Self { stamp: Some(stamp), msg }
    }
}

#[cfg(feature = "testing")]
impl<M: crate::Kinds, K> crate::Kinds for Mail<M, K> {
    fn all() -> Vec<crate::Kind> {
        M::all()
    }

    fn kind(&self) -> crate::Kind {
        self.msg.kind()
    }
}

/// The numbers of a concern's current timers and watches.
#[derive(Debug)]
pub struct Stamps<K> {
    last: u32,
    timers: BTreeMap<K, u32>,
    watches: BTreeMap<K, u32>,
}

impl<K> Default for Stamps<K> {
    fn default() -> Self {
        Self { last: 0, timers: BTreeMap::new(), watches: BTreeMap::new() }
    }
}

impl<K: Clone + Ord> Stamps<K> {
    /// The stamp of a new timer, which replaces the one with its key.
    pub fn timer(&mut self, key: K) -> Stamp<K> {
        self.last = self.last.wrapping_add(1);
        self.timers.insert(key.clone(), self.last);
        Stamp::Timer(key, self.last)
    }

    /// Drops the timer with this key.
    pub fn disarm(&mut self, key: &K) {
        self.timers.remove(key);
    }

    /// The stamp of a new watch, which replaces the one with its key.
    pub fn watch(&mut self, key: K) -> Stamp<K> {
        self.last = self.last.wrapping_add(1);
        self.watches.insert(key.clone(), self.last);
        Stamp::Watch(key, self.last)
    }

    /// Drops the watch with this key.
    pub fn unwatch(&mut self, key: &K) {
        self.watches.remove(key);
    }

    /// Whether a message with this stamp is to be handled. A timer fires once.
    pub fn accepts(&mut self, stamp: Option<Stamp<K>>) -> bool {
        match stamp {
            None => true,
            Some(Stamp::Watch(key, number)) => self.watches.get(&key) == Some(&number),
            Some(Stamp::Timer(key, number)) => {
                let current = self.timers.get(&key) == Some(&number);
                if current {
                    self.timers.remove(&key);
                }
                current
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_or_disarmed_timer_is_ignored_and_a_timer_fires_once() {
        let mut stamps = Stamps::default();
        let (first, second) = (stamps.timer('a'), stamps.timer('a'));
        let other = stamps.timer('b');
        assert!(!stamps.accepts(Some(first)), "replaced while it was in the mailbox");
        assert!(stamps.accepts(Some(second.clone())));
        assert!(!stamps.accepts(Some(second)), "it has fired");
        stamps.disarm(&'b');
        assert!(!stamps.accepts(Some(other)));
    }

    #[test]
    fn a_watch_is_accepted_until_another_watch_takes_its_key() {
        let mut stamps = Stamps::default();
        let first = stamps.watch('a');
        let timer = stamps.timer('a');
        assert!(stamps.accepts(Some(first.clone())), "timers and watches have separate keys");
        assert!(stamps.accepts(Some(timer)));
        assert!(stamps.accepts(Some(first.clone())), "a watch can report many times");
        let second = stamps.watch('a');
        assert!(!stamps.accepts(Some(first)) && stamps.accepts(Some(second)));
    }

    #[test]
    fn a_message_without_a_stamp_is_always_accepted() {
        assert!(Stamps::<char>::default().accepts(None));
    }
}

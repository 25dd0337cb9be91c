//! An entry of a concern's mailbox: a message, and the stamp of the timer or watch that sent it. A message is dropped
//! here if its timer or watch was replaced while the message was in the mailbox.

/// A timer or a watch, with its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source<K> {
    /// A timer.
    Timer(K),
    /// A watch.
    Watch(K),
}

/// Identifies the timer or watch that sent a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp<K> {
    source: Source<K>,
    number: u32,
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

/// A concern's current timers and watches, each with its stamp and what its host keeps for it, for example a task.
///
/// A concern has few at a time, so they are searched one by one: a map would be compiled for the keys of each concern.
#[derive(Debug)]
pub struct Sources<K, T> {
    last: u32,
    current: Vec<(Stamp<K>, T)>,
}

impl<K, T> Default for Sources<K, T> {
    fn default() -> Self {
        Self { last: 0, current: Vec::new() }
    }
}

impl<K: PartialEq, T> Sources<K, T> {
    /// The stamp of a new timer or watch, for [`Sources::set`].
    pub fn stamp(&mut self, source: Source<K>) -> Stamp<K> {
        self.last = self.last.wrapping_add(1);
        Stamp { source, number: self.last }
    }

    /// Makes a timer or watch the current one of its key, and then drops the one before it.
    pub fn set(&mut self, stamp: Stamp<K>, kept: T) {
        match self.current.iter_mut().find(|(current, _)| current.source == stamp.source) {
            Some(current) => *current = (stamp, kept),
            None => self.current.push((stamp, kept)),
        }
    }

    /// Drops the timer or watch with this key.
    pub fn remove(&mut self, source: &Source<K>) {
        self.current.retain(|(current, _)| current.source != *source);
    }

    /// Whether a message with this stamp is to be handled. A timer fires once.
    pub fn accepts(&mut self, stamp: Option<&Stamp<K>>) -> bool {
        let Some(stamp) = stamp else { return true };
        let Some(at) = self.current.iter().position(|(current, _)| current == stamp) else { return false };
        if let Source::Timer(_) = stamp.source {
            self.current.swap_remove(at);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(sources: &mut Sources<char, ()>, source: Source<char>) -> Stamp<char> {
        let stamp = sources.stamp(source);
        sources.set(stamp.clone(), ());
        stamp
    }

    #[test]
    fn a_replaced_or_removed_timer_is_ignored_and_a_timer_fires_once() {
        let mut sources = Sources::default();
        let timer = Source::Timer('a');
        let (first, second) = (set(&mut sources, timer), set(&mut sources, timer));
        let other = set(&mut sources, Source::Timer('b'));
        assert!(!sources.accepts(Some(&first)), "replaced while it was in the mailbox");
        assert!(sources.accepts(Some(&second)));
        assert!(!sources.accepts(Some(&second)), "it has fired");
        sources.remove(&Source::Timer('b'));
        assert!(!sources.accepts(Some(&other)));
    }

    #[test]
    fn a_watch_is_accepted_until_another_watch_takes_its_key() {
        let mut sources = Sources::default();
        let first = set(&mut sources, Source::Watch('a'));
        let timer = set(&mut sources, Source::Timer('a'));
        assert!(sources.accepts(Some(&first)), "timers and watches have separate keys");
        assert!(sources.accepts(Some(&timer)));
        assert!(sources.accepts(Some(&first)), "a watch can report many times");
        let second = set(&mut sources, Source::Watch('a'));
        assert!(!sources.accepts(Some(&first)) && sources.accepts(Some(&second)));
        sources.remove(&Source::Timer('a'));
        assert!(sources.accepts(Some(&second)), "the timer was removed, not the watch");
    }

    #[test]
    fn what_a_host_keeps_is_dropped_when_its_timer_or_watch_is_replaced_removed_or_fires() {
        let kept = std::rc::Rc::new(());
        let mut sources = Sources::default();
        let set = |sources: &mut Sources<_, _>, source| {
            let stamp = sources.stamp(source);
            sources.set(stamp.clone(), std::rc::Rc::clone(&kept));
            stamp
        };
        let held = || std::rc::Rc::strong_count(&kept) - 1;
        set(&mut sources, Source::Watch('a'));
        set(&mut sources, Source::Watch('a'));
        let timer = set(&mut sources, Source::Timer('a'));
        assert_eq!(held(), 2, "the second watch has replaced the first");
        assert!(sources.accepts(Some(&timer)));
        assert_eq!(held(), 1);
        sources.remove(&Source::Watch('a'));
        assert_eq!(held(), 0);
    }

    #[test]
    fn a_message_without_a_stamp_is_always_accepted() {
        assert!(Sources::<char, ()>::default().accepts(None));
    }
}

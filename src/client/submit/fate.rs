//! Who may still decide over a submission whose deadline comes.

use std::sync::atomic::{AtomicU8, Ordering};

const WAITING: u8 = 0;
const SENT: u8 = 1;
const ABANDONED: u8 = 2;

/// Shared by the caller, who may give up, and the batcher, who may send. Exactly one of the two wins, so a
/// caller who gave up first knows that nothing was sent and nothing will be.
#[derive(Debug, Default)]
pub(super) struct Fate(AtomicU8);

impl Fate {
    /// The batcher is about to send. `false`: the caller has given up.
    pub(super) fn send(&self) -> bool {
        self.step(WAITING, SENT) || self.0.load(Ordering::Acquire) == SENT
    }

    /// What was about to be sent certainly was not, nor was it ever before.
    pub(super) fn unsend(&self) {
        self.step(SENT, WAITING);
    }

    /// The caller gives up. `false`: it was sent, or may have been.
    pub(super) fn abandon(&self) -> bool {
        self.step(WAITING, ABANDONED)
    }

    fn step(&self, from: u8, to: u8) -> bool {
        self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_side_decides() {
        let given_up = Fate::default();
        assert!(given_up.abandon());
        assert!(!given_up.send());

        let sent = Fate::default();
        assert!(sent.send() && sent.send());
        assert!(!sent.abandon());

        sent.unsend();
        assert!(sent.abandon());
    }
}

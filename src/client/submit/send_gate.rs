//! Decides between sending a submission and giving it up at its deadline.

use std::sync::atomic::{AtomicU8, Ordering};

const WAITING: u8 = 0;
const SENT: u8 = 1;
const ABANDONED: u8 = 2;

/// Shared by the caller, which may give up, and the batcher, which may send. Exactly one of them wins. So a caller
/// that gave up first knows that nothing was sent and nothing will be.
#[derive(Debug, Default)]
pub(super) struct SendGate(AtomicU8);

impl SendGate {
    /// The batcher is about to send. Returns `false` if the caller has given up.
    pub(super) fn send(&self) -> bool {
        self.step(WAITING, SENT) || self.0.load(Ordering::Acquire) == SENT
    }

    /// The pending send did not happen, and no earlier one did either.
    pub(super) fn unsend(&self) {
        self.step(SENT, WAITING);
    }

    /// The caller gives up. Returns `false` if the job was sent, or may have been.
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
        let given_up = SendGate::default();
        assert!(given_up.abandon());
        assert!(!given_up.send());

        let sent = SendGate::default();
        assert!(sent.send() && sent.send());
        assert!(!sent.abandon());

        sent.unsend();
        assert!(sent.abandon());
    }
}

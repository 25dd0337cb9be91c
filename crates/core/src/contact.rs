//! How long the server's side is certain to keep a session.
//!
//! In an ensemble, the leader expires sessions. Each request touches its session on the follower that receives it. The
//! follower reports its touches only in its replies to the leader's pings, which come every half tick. A follower that is
//! cut off from its leader answers reads for up to syncLimit × tick, so an answered read proves nothing. An answered
//! `sync` proves that the request passed the leader, but the leader does not touch the session then, and the report of this
//! request may follow later. So the trust counts from an earlier request, whose touch the leader has received:
//!
//! ```text
//!  client     ─ i ──▸ answered ·········· j ──▸ answered ─ k ──▸ answered
//!  follower       touch of i      pong ◂── ping            │
//!  leader                         └──────────▸ receives i  └──▸ passes after the pong
//!                                 ◂ half a tick ▸ j passes
//! ```
//!
//! Let `j` and `k` be syncs on one connection, `k` sent after `j` was answered. Let `i` be answered half a tick before
//! `j` was sent. Links between servers deliver in order.
//!
//! 1. The leader sends a ping in the half tick before it handles `j`. The ping precedes the answer to `j` on the link, so
//!    the follower replies to it before `j` is answered. The reply is not older than that half tick, so it reports `i`.
//! 2. `k` is sent after that, so it follows the reply on the link: the leader handles the reply before `k`.
//! 3. `k` is answered without an error, so the session was alive when the reply, or an earlier one, reported `i` to the
//!    leader. The leader restarted its timeout then, not before `i` was sent.
//!
//! So the session lives until the sending of `i` plus its timeout. If the client has changed its server between `i` and
//! `k`, the new server had the leader confirm the session, which restarts its timeout later than `i`. A new leader gives
//! every session its full timeout. The start of the session counts as `i`, because the leader handles it.
//!
//! The client does not know the tick. By default a session timeout is at least two ticks (`minSessionTimeout`), so half a
//! tick is at most a quarter of the timeout. Limits: a smaller `minSessionTimeout`; and a leader that lost its majority
//! answers `sync` until it notices, which is before the sessions of its successor end.
//!
//! With a single server the same rule holds and is only more careful than necessary.

use std::collections::VecDeque;
use std::time::Duration;

/// Half a tick is at most the session timeout divided by this.
const HALF_TICKS: u32 = 4;

/// One tenth of the timeout is not trusted, to allow for scheduling delays between a decision and its effect.
const MARGIN: u32 = 10;

/// Of syncs in quick succession one per this part of the timeout is kept: enough for the rule, and a bounded number.
const KEPT: u32 = 50;

/// The answered syncs of one session. Times are measured from the sending of the request for the session.
#[derive(Debug, Clone)]
pub struct Contact {
    timeout: Duration,
    /// Answered syncs that may still be of use, oldest first.
    syncs: VecDeque<Sync>,
    /// The sending of the latest request that the leader has provably heard of.
    heard: Duration,
}

#[derive(Debug, Clone, Copy)]
struct Sync {
    sent: Duration,
    answered: Duration,
}

impl Contact {
    /// Starts with the session.
    #[must_use]
    pub fn new(timeout: Duration) -> Self {
        Self { timeout, syncs: VecDeque::new(), heard: Duration::ZERO }
    }

    /// Trusts the session for at most this timeout from now on: a server grants a shorter one.
    pub fn shorten(&mut self, timeout: Duration) {
        self.timeout = self.timeout.min(timeout);
    }

    /// The timeout that is trusted.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Records an answered sync.
    pub fn answered(&mut self, sent: Duration, now: Duration) {
        let latest = |syncs: &VecDeque<Sync>, by: Duration| {
            syncs.iter().filter(|sync| sync.answered <= by).map(|sync| sync.sent).max()
        };
        let reported =
            latest(&self.syncs, sent).and_then(|before| before.checked_sub(self.timeout / HALF_TICKS));
        let heard = reported.and_then(|by| latest(&self.syncs, by));
        if let Some(heard) = heard {
            self.heard = self.heard.max(heard);
        }
        let newest = self.syncs.back().map(|sync| sync.answered);
        if newest.is_none_or(|newest| newest + self.timeout / KEPT <= now) {
            self.syncs.push_back(Sync { sent, answered: now });
        }
        // Those before the last request that was heard of cannot advance it.
        let heard = self.heard;
        while self.syncs.front().is_some_and(|sync| sync.sent < heard) {
            self.syncs.pop_front();
        }
    }

    /// The sending of the latest request from which the timeout provably counts.
    #[must_use]
    pub fn heard(&self) -> Duration {
        self.heard
    }

    /// The time until which the session can be trusted to live.
    #[must_use]
    pub fn trusted_until(&self) -> Duration {
        self.heard + self.timeout - self.timeout / MARGIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn contact() -> Contact {
        Contact::new(s(40))
    }

    #[test]
    fn a_session_is_trusted_from_its_start_for_nine_tenths_of_its_timeout() {
        assert_eq!(contact().trusted_until(), s(36));
    }

    #[test]
    fn a_shorter_timeout_counts_at_once_and_a_longer_one_never() {
        let mut contact = contact();
        contact.answered(s(3), s(4));
        contact.answered(s(14), s(15));
        contact.answered(s(16), s(17));
        contact.shorten(s(50));
        assert_eq!((contact.timeout(), contact.trusted_until()), (s(40), s(39)));
        contact.shorten(s(20));
        assert_eq!((contact.timeout(), contact.trusted_until()), (s(20), s(21)));
    }

    #[test]
    fn one_answered_sync_proves_nothing_about_its_own_touch() {
        let mut contact = contact();
        contact.answered(s(20), s(21));
        contact.answered(s(22), s(23));
        assert_eq!(contact.heard(), Duration::ZERO);
    }

    #[test]
    fn a_request_counts_after_two_later_syncs_one_half_tick_after_it() {
        let mut contact = contact();
        contact.answered(s(3), s(4));
        contact.answered(s(14), s(15));
        assert_eq!(contact.heard(), Duration::ZERO, "the reply to the ping may still be on its way");
        contact.answered(s(16), s(17));
        assert_eq!(contact.heard(), s(3));
        assert_eq!(contact.trusted_until(), s(39));
    }

    #[test]
    fn a_request_that_was_answered_within_half_a_tick_does_not_count() {
        let mut contact = contact();
        contact.answered(s(3), s(5));
        contact.answered(s(14), s(15));
        contact.answered(s(16), s(17));
        assert_eq!(contact.heard(), Duration::ZERO, "the ping may have come before it");
    }

    #[test]
    fn syncs_that_overlap_do_not_prove_their_order() {
        let mut contact = contact();
        contact.answered(s(3), s(4));
        contact.answered(s(14), s(20));
        contact.answered(s(16), s(20));
        assert_eq!(contact.heard(), Duration::ZERO);
    }

    #[test]
    fn trust_advances_with_regular_syncs_and_few_are_kept() {
        let mut contact = contact();
        for at in 0..400 {
            contact.answered(Duration::from_millis(at * 100), Duration::from_millis(at * 100 + 5));
        }
        let lag = Duration::from_millis(39_900) - contact.heard();
        assert!(lag >= s(10) && lag < s(13), "{lag:?}");
        assert!(contact.syncs.len() <= 20, "{}", contact.syncs.len());
    }

    #[test]
    fn syncs_before_the_last_known_contact_are_forgotten_at_once() {
        let mut contact = contact();
        for at in 0..10 {
            contact.answered(s(at), s(at));
        }
        contact.answered(s(100), s(100));
        contact.answered(s(101), s(101));
        assert_eq!((contact.heard(), contact.syncs.len()), (s(9), 3));
    }
}

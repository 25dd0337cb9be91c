//! The next candidate watches for beats of the leader, and replaces it when it is silent.

use super::state::{Claiming, Heard, Next, NextRead, State};
use super::{Effect, Findings, Leadership, Request, Why};
use crate::machine::election::campaign::{self, Campaign, Ticket};
use crate::outcome::{Outcome, Rejection};
use crate::time::Millis;
use crate::txn::Seat;

impl Leadership {
    /// Another candidate is first.
    pub(super) fn stand_by(&mut self, next: Option<Seat>, out: &mut Vec<Effect>) {
        if let State::Claiming(_, claiming) = &self.state
            && next.as_ref() == Some(claiming.seat())
        {
            // The look was answered before the claim that replaces the first candidate.
            return;
        }
        if !matches!(self.state, State::Standby(_, _)) {
            self.fall_back(Why::CandidateGone, out);
        }
        self.state = match self.take() {
            State::Campaigning(mut campaign) => {
                let next = next.map(|seat| watch(&mut campaign, seat, out));
                State::Standby(campaign, next)
            }
            // The wait continues.
            State::Standby(campaign, Some(present)) if next.as_ref() == Some(&present.seat) => {
                State::Standby(campaign, Some(present))
            }
            State::Standby(mut campaign, _) => {
                let next = next.map(|seat| watch(&mut campaign, seat, out));
                State::Standby(campaign, next)
            }
            // A leaving campaign does not stand by; the other states have just fallen back.
            state @ (State::Idle(_)
            | State::Claiming(_, _)
            | State::Active(_, _, _)
            | State::Paused(_, _, _)
            | State::Leaving(_, _)) => state,
        };
    }

    /// `/leading` was changed: read it, and watch for the next change.
    pub(super) fn beat_changed(&mut self, ticket: Ticket, out: &mut Vec<Effect>) {
        if let State::Standby(campaign, Some(next)) = &mut self.state
            && next.watch == ticket
        {
            *next = watch(campaign, next.seat.clone(), out);
        }
        // Otherwise the watch was replaced, or is no longer needed.
    }

    /// A watch is a hint. Without it the beats are seen when the wait is over, and the wait begins again.
    pub(super) fn beats_watched(&mut self, outcome: Outcome<()>, out: &mut Vec<Effect>) {
        match outcome {
            Outcome::Rejected(rejection) => out.push(Effect::Refused(rejection)),
            // The next read shows whether the leader beats.
            Outcome::Applied(()) | Outcome::Unknown => {}
        }
    }

    pub(super) fn read_when_due(&mut self, now: Millis, out: &mut Vec<Effect>) {
        if let State::Standby(campaign, Some(next)) = &mut self.state
            && let NextRead::Due(at) = next.read
            && now >= at
        {
            next.read = NextRead::Asked(read(campaign, &next.seat, out));
        }
    }

    /// Returns whether the read belongs to the wait of the next candidate.
    pub(super) fn awaits_beat(&self, ticket: Ticket) -> bool {
        matches!(&self.state, State::Standby(_, Some(next)) if next.read == NextRead::Asked(ticket))
    }

    pub(super) fn beat_read(&mut self, now: Millis, outcome: Outcome<Findings>, out: &mut Vec<Effect>) {
        let Some(session) = self.session.known() else {
            // Without a session there is no candidacy.
            return;
        };
        let found = match outcome {
            Outcome::Applied(found) => found,
            Outcome::Rejected(rejection) => return self.read_later(now, Some(rejection), out),
            Outcome::Unknown => return self.read_later(now, None, out),
        };
        self.note(found, out);
        let heard = match self.heard {
            Some(heard) if heard.beat == found.beat => heard,
            Some(_) | None => Heard { beat: found.beat, since: now },
        };
        self.heard = Some(heard);
        let State::Standby(_, Some(next)) = &mut self.state else {
            // The wait has ended.
            return;
        };
        let silent_at = heard.since + session.failover.wait_after(next.seat.waits_for());
        if now >= silent_at {
            return self.replace_silent(now, found, out);
        }
        next.read = NextRead::Due(silent_at);
    }

    fn read_later(&mut self, now: Millis, refused: Option<Rejection>, out: &mut Vec<Effect>) {
        out.extend(refused.map(Effect::Refused));
        if let (State::Standby(_, Some(next)), Some(session)) = (&mut self.state, self.session.known()) {
            next.read = NextRead::Due(now + session.failover.beat);
        }
    }

    /// The leader is silent: claims in its place. The claim sets `/leading` at the version that was read, so a beat that
    /// was applied since then rejects it.
    fn replace_silent(&mut self, now: Millis, found: Findings, out: &mut Vec<Effect>) {
        self.state = match self.take() {
            State::Standby(mut campaign, Some(next)) => {
                let ticket = campaign.ticket();
                State::Claiming(campaign, Claiming::Reading { ticket, seat: next.seat })
            }
            // It no longer waits.
            state @ (State::Idle(_)
            | State::Campaigning(_)
            | State::Standby(_, None)
            | State::Claiming(_, _)
            | State::Active(_, _, _)
            | State::Paused(_, _, _)
            | State::Leaving(_, _)) => state,
        };
        self.write_claim(now, found, out);
    }
}

/// Watches for the next beat, then reads the last one: every beat is seen or reported.
fn watch(campaign: &mut Campaign, seat: Seat, out: &mut Vec<Effect>) -> Next {
    let watch = campaign.ticket();
    out.push(Effect::Send(watch, Request::WatchBeats));
    let read = NextRead::Asked(read(campaign, &seat, out));
    Next { seat, watch, read }
}

pub(super) fn read(campaign: &mut Campaign, seat: &Seat, out: &mut Vec<Effect>) -> campaign::Ticket {
    let ticket = campaign.ticket();
    out.push(Effect::Send(ticket, Request::Read { candidate: seat.candidate().to_owned() }));
    ticket
}

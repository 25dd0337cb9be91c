//! All steps, and the conditions under which a state allows them.

use bellwether_core::path;

use super::client::Call;
use super::model::{Action, State};
use super::stage::{RECORD, WALL, delayed, job, worker};

pub(super) fn all() -> impl Iterator<Item = Action> {
    let each = (0..2).flat_map(|n| {
        [
            Action::ServeLeader(n),
            Action::Hint(n),
            Action::ServeWorker(n),
            Action::Hear(n),
            Action::Succeed(n),
            Action::Fail(n),
            Action::Abort(n),
            Action::Renew(n),
            Action::Revoke(n),
            Action::Grant(n),
            Action::PassLeader(n),
            Action::Tidy(n),
            Action::Promote(n),
            Action::Late(n),
            Action::EndGrace(n),
            Action::TakeOver(n),
        ]
    });
    let once = [
        Action::Claim,
        Action::CutLeader { served: false },
        Action::CutLeader { served: true },
        Action::ConnectLeader,
        Action::CutWorker { served: false },
        Action::CutWorker { served: true },
        Action::ConnectWorker,
        Action::Expire,
        Action::Learn,
        Action::Cancel,
        Action::DeleteEphemeral,
        Action::PassWorkers,
        Action::Submit,
        Action::ServeClient,
        Action::LoseReply { served: false },
        Action::LoseReply { served: true },
        Action::LookBack,
        Action::Retry,
        Action::Purge,
        Action::Minute,
        Action::Drain,
    ];
    each.chain(once)
}

pub(super) fn enabled(state: &State, action: &Action) -> bool {
    let (left, first) = (&state.left, &state.workers[0]);
    let runs = |n: usize, signalled: bool| {
        state.workers[n].run.as_ref().is_some_and(|run| run.signalled || !signalled)
    };
    match action {
        Action::Claim => left.claims > 0,
        Action::ServeLeader(n) => !state.leaders[*n].sent.is_empty(),
        Action::Hint(n) => !state.leaders[*n].hints.is_empty(),
        Action::CutLeader { served } => {
            let leader = &state.leaders[0];
            left.leader_cuts > 0 && leader.up && leader.wing.is_some() && (!served || !leader.sent.is_empty())
        }
        Action::ConnectLeader => !state.leaders[0].up,
        Action::ServeWorker(n) => {
            state.workers[*n].up && state.workers[*n].alive && !state.workers[*n].sent.is_empty()
        }
        Action::Hear(n) => !state.workers[*n].mailbox.is_empty(),
        Action::CutWorker { served } => {
            left.worker_cuts > 0 && first.up && first.alive && (!served || !first.sent.is_empty())
        }
        Action::ConnectWorker => first.alive && !first.up && first.parts.is_some(),
        Action::Expire => left.expiries > 0 && first.alive,
        Action::Learn => !first.alive && first.parts.is_some(),
        Action::Succeed(n) => runs(*n, false),
        Action::Fail(n) => left.failures > 0 && runs(*n, false),
        Action::Abort(n) => runs(*n, true),
        Action::Renew(n) => left.renewals > 0 && runs(*n, false),
        Action::Revoke(n) => {
            let leader = &state.leaders[*n];
            left.revocations > 0 && leader.up && leader.wing.is_some() && !leader.is_revoking()
        }
        Action::Cancel => left.cancels > 0,
        Action::Promote(n) => {
            let leads = state.leaders[*n].wing.is_some() && state.leaders[*n].up;
            leads && delayed(&state.zk, &job()).is_some()
        }
        Action::Grant(n) => state.workers[*n].waits_for_slot(),
        Action::PassLeader(n) => {
            let leader = &state.leaders[*n];
            let leads = leader.wing.is_some() || left.claims > 0;
            left.expires && leader.wall == WALL && leads && leader.up
        }
        Action::PassWorkers => left.expires && first.wall == WALL,
        Action::Tidy(n) => {
            let leader = &state.leaders[*n];
            left.tidies > 0 && state.aged && leader.up && leader.wing.is_some() && !leader.is_tidying()
        }
        Action::Submit => {
            let removed = || !state.zk.znodes.contains_key(&*RECORD);
            left.submissions > 0 && !state.client.is_calling() && (!left.after_removal || removed())
        }
        Action::ServeClient => state.client.call == Call::Sent,
        Action::LoseReply { .. } => left.lost_replies > 0 && state.client.call == Call::Sent,
        Action::LookBack => state.client.call == Call::Unknown,
        Action::Retry => left.retries > 0 && state.can_be_retried(),
        Action::Purge => left.purges > 0 && state.aged,
        Action::Minute => left.minutes > 0 && state.is_quiet(),
        Action::Late(at) => *at < state.late.len(),
        Action::Drain => left.drains > 0,
        Action::EndGrace(n) => state.workers[*n].has_grace(),
        Action::TakeOver(n) => left.moves > 0 && state.may_take_over(*n),
        Action::DeleteEphemeral => {
            left.strange > 0 && first.alive && state.zk.znodes.contains_key(&path::worker(worker(0)))
        }
    }
}

/// Returns whether an automatic step is left, which is not an adversity or a request of a client.
pub(super) fn goes_on(state: &State) -> bool {
    let of_itself = |action: &Action| match action {
        Action::ServeLeader(_)
        | Action::Hint(_)
        | Action::ConnectLeader
        | Action::ServeWorker(_)
        | Action::Hear(_)
        | Action::ConnectWorker
        | Action::Learn
        | Action::Succeed(_)
        | Action::Abort(_)
        | Action::Grant(_)
        | Action::Promote(_)
        | Action::Late(_)
        | Action::PassLeader(_)
        | Action::PassWorkers
        | Action::ServeClient
        | Action::EndGrace(_)
        | Action::LookBack => true,
        Action::Claim
        | Action::CutLeader { .. }
        | Action::CutWorker { .. }
        | Action::Expire
        | Action::Fail(_)
        | Action::Renew(_)
        | Action::Revoke(_)
        | Action::Cancel
        | Action::DeleteEphemeral
        | Action::Tidy(_)
        | Action::Submit
        | Action::LoseReply { .. }
        | Action::Retry
        | Action::Purge
        | Action::Drain
        | Action::TakeOver(_)
        | Action::Minute => false,
    };
    all().any(|action| of_itself(&action) && enabled(state, &action))
}

//! Which steps there are, and which of them a state allows.

use bellwether_core::path;

use super::model::{Action, State};
use super::stage::{DELAYED, worker};

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
            Action::Promote(n),
            Action::Late(n),
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
            leads && state.zk.znodes.contains_key(&*DELAYED)
        }
        Action::Late(at) => *at < state.late.len(),
        Action::DeleteEphemeral => {
            left.strange > 0 && first.alive && state.zk.znodes.contains_key(&path::worker(worker(0)))
        }
    }
}

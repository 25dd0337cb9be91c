//! Reduces a plan to the parts that are needed to break the invariant.
//!
//! A part of a list is removed and the simulation runs again. If the same invariant breaks, the removal is kept. It
//! starts with halves and goes on with smaller parts, until no single fault and no single action can be removed.

use super::{Plan, PlannedCall};

/// Returns the smallest plan found for which `breaks` holds, within the given number of tries.
pub fn shrink(plan: Plan, mut tries: u32, mut breaks: impl FnMut(&Plan) -> bool) -> Plan {
    let mut best = plan;
    loop {
        let before = size(&best);
        best = cut(
            best,
            &mut tries,
            &mut breaks,
            |plan| plan.faults.len(),
            |plan, from, to| {
                plan.faults.drain(from..to);
            },
        );
        best = cut(
            best,
            &mut tries,
            &mut breaks,
            |plan| plan.actions.len(),
            |plan, from, to| {
                plan.actions.drain(from..to);
            },
        );
        best = cut(best, &mut tries, &mut breaks, submissions, |plan, from, to| {
            drop_submissions(plan, from, to);
        });
        if size(&best) == before || tries == 0 {
            return best;
        }
    }
}

fn size(plan: &Plan) -> usize {
    plan.faults.len() + plan.actions.len() + submissions(plan)
}

/// Counts the jobs in all rounds of submissions.
fn submissions(plan: &Plan) -> usize {
    let jobs = |call: &PlannedCall| match call {
        PlannedCall::Submit(jobs) => jobs.len(),
        _ => 0,
    };
    plan.actions.iter().map(|action| jobs(&action.call)).sum()
}

fn drop_submissions(plan: &mut Plan, from: usize, to: usize) {
    let mut at = 0;
    for action in &mut plan.actions {
        if let PlannedCall::Submit(jobs) = &mut action.call {
            jobs.retain(|_| {
                at += 1;
                !(from < at && at <= to)
            });
        }
    }
    plan.actions.retain(|action| !matches!(&action.call, PlannedCall::Submit(jobs) if jobs.is_empty()));
}

fn cut(
    mut best: Plan,
    tries: &mut u32,
    breaks: &mut impl FnMut(&Plan) -> bool,
    len: impl Fn(&Plan) -> usize,
    remove: impl Fn(&mut Plan, usize, usize),
) -> Plan {
    let mut part = len(&best).div_ceil(2);
    while part > 0 {
        let mut from = 0;
        while from < len(&best) && *tries > 0 {
            let mut less = best.clone();
            let to = (from + part).min(len(&best));
            remove(&mut less, from, to);
            *tries -= 1;
            if breaks(&less) {
                best = less;
            } else {
                from = to;
            }
        }
        part = if part == 1 { 0 } else { part.div_ceil(2) };
    }
    best
}

#[cfg(test)]
mod tests {
    use super::super::{FaultKind, Size};
    use super::*;

    #[test]
    fn parts_that_do_not_matter_are_removed() {
        let plan =
            (0..).map(|seed| Plan::generate(seed, Size::default())).find(|plan| plan.faults.len() > 10);
        let plan = plan.expect("one seed gives more than ten faults");
        let wanted = plan.faults[5].at_ms;
        let needs = |plan: &Plan| plan.faults.iter().any(|fault| fault.at_ms == wanted);
        let least = shrink(plan, 1_000, needs);
        assert_eq!((least.faults.len(), least.actions.len()), (1, 0));
    }

    #[test]
    fn without_tries_nothing_is_removed() {
        let plan = Plan::generate(3, Size::default());
        let faults = plan.faults.len();
        assert_eq!(shrink(plan, 0, |_| true).faults.len(), faults);
    }

    #[test]
    fn the_same_seed_gives_the_same_plan() {
        let told = |seed| Plan::generate(seed, Size::default()).to_string();
        assert_eq!(told(7), told(7));
        assert_ne!(told(7), told(8));
        let crash = |seed| {
            let faults = Plan::generate(seed, Size::default()).faults;
            faults.iter().any(|fault| matches!(fault.kind, FaultKind::Crash { .. }))
        };
        assert!((0..20).any(crash));
    }
}

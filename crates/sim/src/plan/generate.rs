//! Generates a plan from a seed.

mod ensemble;
mod segments;

use std::time::Duration;

use bellwether::client::Ended;
use bellwether_actors::node::Part;
use bellwether_core::backoff::Backoff;
use bellwether_core::job::{Payload, Placement, Policy, Priority};
use bellwether_core::machine::election::campaign::Strategy;
use bellwether_core::name::{GroupId, JobId, Kind, Lane, StrategyName};
use bellwether_core::placement::BuiltInStrategy;
use bellwether_core::schedule::{Misfire, Overlap, ScheduleRecord, ScheduleSpec, Template, When};
use bellwether_core::time::WallMillis;
use fastrand::Rng;

use crate::host::context::WALL_MS;
use crate::placement::OWN_STRATEGIES;

use super::{
    Action, Fault, FaultKind, GroupPlan, JobPlan, NodePlan, Plan, PlannedCall, Seal, Servers, Size, Target,
};

impl Plan {
    /// Draws a plan. The same seed and size give the same plan.
    #[must_use]
    pub fn generate(seed: u64, size: Size) -> Self {
        let mut rng = Rng::with_seed(seed);
        let rng = &mut rng;
        let session_timeout_ms = *choose(rng, &[2_000, 4_000, 10_000]);
        let heal_ms = rng.u64(20_000..90_000);
        let mut nodes: Vec<_> = (0..rng.usize(1..=size.nodes.max(1)))
            .map(|_| NodePlan { skew_ms: rng.i64(-3_000..=3_000), slots: rng.u32(1..=4), tagged: false })
            .collect();
        let clients: Vec<_> =
            (0..rng.usize(1..=size.clients.max(1))).map(|_| rng.i64(-3_000..=3_000)).collect();
        let mut jobs: Vec<_> = (0..rng.usize(1..=size.jobs.max(1))).map(|number| job(rng, number)).collect();
        let mut actions = actions(rng, &jobs, clients.len(), heal_ms);
        let faults = faults(rng, nodes.len(), clients.len(), session_timeout_ms, heal_ms);
        let mut schedules: Vec<_> = (0..rng.usize(..=2)).map(|_| schedule(rng)).collect();
        share_job(&mut Rng::with_seed(seed ^ 0x10b), &mut schedules, &jobs);
        // Two in five plans have groups.
        let count = if rng.u8(..5) < 2 { rng.usize(1..=2) } else { 0 };
        let groups: Vec<_> = (0..count).map(|number| group(rng, number, &mut jobs)).collect();
        for (number, group) in groups.iter().enumerate() {
            generations(rng, number, group, clients.len(), heal_ms, &mut actions);
        }
        let retention_ms = (rng.u8(..3) > 0).then(|| rng.u64(20_000..40_000));
        // A purge removes records of jobs that ended at least a minute ago, so it comes late. With a retention there
        // are few records left to purge.
        let purges = if retention_ms.is_none() { 4 } else { rng.usize(..=1) };
        for _ in 0..purges {
            let ended = *choose(rng, &[Ended::Succeeded, Ended::Succeeded, Ended::Cancelled, Ended::Dead]);
            let (at_ms, client) = (rng.u64(61_000..120_000), rng.usize(..clients.len()));
            actions.push(Action { at_ms, client, call: PlannedCall::Purge(ended) });
        }
        segments::extend(&mut Rng::with_seed(seed ^ 0x5e63), &mut jobs, clients.len(), heal_ms, &mut actions);
        strategies(&mut Rng::with_seed(seed ^ 0x57a7), clients.len(), heal_ms, &mut actions);
        settings(&mut Rng::with_seed(seed ^ 0x5e77), clients.len(), heal_ms, &mut actions);
        tags(&mut Rng::with_seed(seed ^ 0x7a65), &mut nodes, &mut jobs, &mut actions);
        let mut plan = Self {
            seed,
            session_timeout_ms,
            tick_ms: 500,
            sync_limit: None,
            campaign: if rng.u8(..4) == 0 { Strategy::Single } else { Strategy::Queue },
            nodes,
            clients,
            jobs,
            groups,
            schedules,
            retention_ms,
            actions,
            faults,
            heal_ms,
        };
        // Drawn separately, so that the rest of the plan does not depend on the servers.
        let drawn = &mut Rng::with_seed(seed ^ 0x3e5e_4b1e);
        let three = match size.servers {
            Servers::One => false,
            Servers::Three => true,
            Servers::Drawn => drawn.bool(),
        };
        if three {
            ensemble::extend(drawn, &mut plan);
        }
        // Also drawn separately.
        let drawn = &mut Rng::with_seed(seed ^ 0x4a09_ed00);
        hangs(drawn, &mut plan);
        wrong_clocks(&mut Rng::with_seed(seed ^ 0xc10c_c10c), &mut plan.nodes, &mut plan.clients);
        plan.faults.sort_by_key(|fault| fault.at_ms);
        plan.actions.sort_by_key(|action| action.at_ms);
        plan
    }
}

/// Changes of the placement strategy: one at the start in most plans, and up to two later. Drawn separately, so that the rest
/// of the plan does not depend on it.
fn strategies(rng: &mut Rng, clients: usize, heal_ms: u64, actions: &mut Vec<Action>) {
    let mut set = |rng: &mut Rng, at_ms| {
        let names = BuiltInStrategy::ALL.map(BuiltInStrategy::as_str);
        let strategy = if rng.u8(..3) > 0 { *choose(rng, &names) } else { *choose(rng, &OWN_STRATEGIES) };
        let call = PlannedCall::SetStrategy(StrategyName::new(strategy).expect("letters and dashes"));
        actions.push(Action { at_ms, client: rng.usize(..clients), call });
    };
    if rng.u8(..4) > 0 {
        set(rng, 0);
    }
    for _ in 0..rng.usize(..=2) {
        let at_ms = rng.u64(..heal_ms);
        set(rng, at_ms);
    }
}

/// Changes of running workers, in two of five plans. Drawn separately, so that the rest of the plan does not depend on it.
fn settings(rng: &mut Rng, clients: usize, heal_ms: u64, actions: &mut Vec<Action>) {
    if rng.u8(..5) > 1 {
        return;
    }
    for _ in 0..rng.usize(1..=5) {
        let kinds = ["sum", "flaky", "slow", "steady", "nest1"];
        let paused = rng.bool().then(|| Kind::new(*choose(rng, &kinds)).expect("letters"));
        let slots = (paused.is_none() || rng.bool()).then(|| rng.u32(..=6));
        let (which, ms) = (rng.usize(..8), rng.u64(10..15_000));
        let (at_ms, client) = (rng.u64(..heal_ms), rng.usize(..clients));
        let call = PlannedCall::SetWorker { which, slots, tagged: None, paused, ms };
        actions.push(Action { at_ms, client, call });
    }
    let client = rng.usize(..clients);
    actions.push(Action { at_ms: heal_ms + 5_000, client, call: PlannedCall::ResetWorkers });
}

/// Tags, in half of the plans: some workers have the tag, at least one of them always, and some jobs need it. Drawn
/// separately, so that the rest of the plan does not depend on it.
fn tags(rng: &mut Rng, nodes: &mut [NodePlan], jobs: &mut [JobPlan], actions: &mut [Action]) {
    if rng.bool() {
        return;
    }
    let always = rng.usize(..nodes.len());
    for (at, node) in nodes.iter_mut().enumerate() {
        node.tagged = at == always || rng.bool();
    }
    for job in jobs {
        job.tagged = rng.u8(..3) == 0;
    }
    for action in actions {
        if let PlannedCall::SetWorker { tagged, .. } = &mut action.call {
            *tagged = (rng.u8(..3) > 0).then(|| rng.bool());
        }
    }
}

/// Up to two hung runtimes: mostly the leader's, for longer or shorter than the candidates wait for its beat.
fn hangs(rng: &mut Rng, plan: &mut Plan) {
    for _ in 0..rng.usize(..=2) {
        let target =
            if rng.u8(..4) > 0 { Target::Leader } else { Target::Node(rng.usize(..plan.nodes.len())) };
        let ms = rng.u64(500..3 * plan.session_timeout_ms.max(3_000));
        plan.faults.push(Fault { at_ms: rng.u64(..plan.heal_ms), kind: FaultKind::Hang { target, ms } });
    }
}

/// In one of four plans some machines have a wrong wall clock. The first node has not, so that one can lead.
fn wrong_clocks(rng: &mut Rng, nodes: &mut [NodePlan], clients: &mut [i64]) {
    const MINUTE: i64 = 60_000;
    const YEAR: i64 = 365 * 1_440 * MINUTE;
    if rng.u8(..4) > 0 {
        return;
    }
    let candidates = nodes.iter_mut().skip(1).map(|node| &mut node.skew_ms);
    for skew_ms in candidates.chain(clients) {
        if rng.bool() {
            *skew_ms += *choose(rng, &[YEAR, -YEAR, MINUTE, -MINUTE]);
        }
    }
}

fn choose<'a, T>(rng: &mut Rng, of: &'a [T]) -> &'a T {
    &of[rng.usize(..of.len())]
}

/// The kinds whose jobs often die, and for whose dead-letter jobs each worker has a handler.
const DYING: [&str; 4] = ["flaky", "killer", "never", "poison"];

fn job(rng: &mut Rng, number: usize) -> JobPlan {
    let kinds = [
        "sum", "sum", "sum", "flaky", "flaky", "slow", "stubborn", "poison", "hangs", "steady", "steady",
        "never", "later", "killer",
    ];
    // Nested kinds are rare, because each of them is a tree of jobs.
    let nests = ["nest1", "nest1", "nest2", "nest3"];
    let kind = if rng.u8(..14) == 0 { *choose(rng, &nests) } else { *choose(rng, &kinds) };
    // A hanging handler must end within the run. A slow handler may run longer than its lease.
    let short = kind == "hangs" || rng.u8(..4) == 0;
    // Two in five jobs have a lane. There are few lanes, so that several jobs share one.
    let lane = (rng.u8(..5) < 2).then(|| format!("lane-{}", rng.u8(..3)));
    JobPlan {
        id: JobId::new(format!("j{number}")).expect("letters and digits"),
        kind: Kind::new(kind).expect("letters"),
        lane: lane.map(|lane| Lane::new(lane).expect("letters, digits and a dash")),
        priority: rng.u8(..10),
        delay_ms: (rng.u8(..4) == 0).then(|| rng.u64(100..70_000)),
        // Some expire before they may start, because the clocks differ.
        expires_ms: (rng.u8(..5) == 0).then(|| rng.u64(200..90_000)),
        max_attempts: rng.u32(1..=4),
        max_losses: rng.u32(1..=4),
        backoff_ms: *choose(rng, &[50, 500, 3_000, 15_000]),
        timeout_ms: (rng.u8(..4) == 0).then(|| rng.u64(100..5_000)),
        lease_ms: short.then(|| *choose(rng, &[1_000, 2_000, 5_000])),
        renews: kind != "hangs" && rng.bool(),
        dead_letter: DYING.contains(&kind),
        tagged: false,
    }
}

/// A group, whose members are added to the jobs.
fn group(rng: &mut Rng, number: usize, jobs: &mut Vec<JobPlan>) -> GroupPlan {
    let id = GroupId::new(format!("g{number}")).expect("a letter and digits");
    let kinds = ["sum", "sum", "flaky", "slow", "steady", "never", "later", "nest1", "nest2"];
    let kind = Kind::new(*choose(rng, &kinds)).expect("letters");
    let first = jobs.len();
    for number in 0..rng.u32(..=6) {
        let name = JobId::member(&kind, &id, number).expect("short names");
        let drawn = job(rng, 0);
        // A member that waits long keeps its group open.
        let delay_ms = drawn.delay_ms.map(|ms| ms / 4);
        let dead_letter = DYING.contains(&kind.as_str());
        jobs.push(JobPlan { id: name, kind: kind.clone(), delay_ms, dead_letter, ..drawn });
    }
    GroupPlan {
        id,
        kind,
        fail_fast: rng.u8(..3) == 0,
        join: rng.u8(..5) > 0,
        seal: *choose(rng, &[Seal::First, Seal::Last, Seal::After]),
        members: first..jobs.len(),
    }
}

/// Clients that submit a group's members: some stop before the end, the last one submits all.
fn generations(
    rng: &mut Rng,
    number: usize,
    group: &GroupPlan,
    clients: usize,
    heal_ms: u64,
    actions: &mut Vec<Action>,
) {
    let busy = heal_ms * 3 / 4;
    let mut at_ms = rng.u64(..busy);
    let mut add = |rng: &mut Rng, at_ms: u64, call| {
        actions.push(Action { at_ms, client: rng.usize(..clients), call });
    };
    for _ in 0..rng.usize(..=2) {
        let members = rng.usize(..=group.members.len());
        let (seal, pace_ms) = (rng.u8(..4) == 0 && members == group.members.len(), rng.u64(..3_000));
        add(rng, at_ms, PlannedCall::Generate { group: number, members, seal, pace_ms });
        at_ms += rng.u64(..10_000);
    }
    // One in eight groups is never sealed.
    let (seal, pace_ms) = (rng.u8(..8) > 0, rng.u64(..1_000));
    add(rng, at_ms, PlannedCall::Generate { group: number, members: group.members.len(), seal, pace_ms });
    for member in group.members.clone() {
        let soon = at_ms + rng.u64(..15_000);
        match rng.u8(..8) {
            0 => add(rng, soon, PlannedCall::Cancel(member)),
            1 => {
                add(rng, soon, PlannedCall::Cancel(member));
                let later = soon + rng.u64(..3_000);
                add(rng, later, PlannedCall::Retry(member));
            }
            2 => add(rng, soon, PlannedCall::Retry(member)),
            // Retry while the leader may be counting the group's ends.
            3 => add(rng, at_ms, PlannedCall::RetryAtEnd(member)),
            _ => {}
        }
    }
    if rng.u8(..4) == 0 {
        let later = at_ms + rng.u64(..20_000);
        add(rng, later, PlannedCall::CancelJoin(number));
    }
    if rng.u8(..4) == 0 {
        let later = at_ms + rng.u64(..20_000);
        add(rng, later, PlannedCall::RetryJoin(number));
    }
}

/// A schedule that ticks at 22:13 and 22:14 on 14 November. [`WALL_MS`] is 20 s into the first of these minutes (2023).
fn schedule(rng: &mut Rng) -> ScheduleRecord {
    let seconds = *choose(rng, &["*/3", "*/7", "*/20", "5,6,7", "40"]);
    let expression = format!("{seconds} 13,14 22 14 11 *");
    let kind = *choose(rng, &["sum", "sum", "flaky", "slow"]);
    let catch_up = Misfire::CatchUp { limit: 3, within: Duration::from_secs(30) };
    let template = Template {
        kind: Kind::new(kind).expect("letters"),
        payload: Payload::json(*b"\"of a tick\"").expect("short"),
        policy: Policy {
            backoff: Backoff { initial: Duration::from_millis(100), max: Duration::from_secs(1) },
            ..Policy::default()
        },
        placement: Placement::default(),
        priority: Priority::default(),
        expires_after: None,
        job_id: None,
    };
    let spec = ScheduleSpec {
        when: When::cron(&expression, "UTC").expect("the expression ticks once a year"),
        misfire: *choose(rng, &[Misfire::Skip, Misfire::Once, catch_up]),
        grace: Duration::from_secs(*choose(rng, &[1, 5, 60])),
        overlap: *choose(rng, &[Overlap::Allow, Overlap::Forbid, Overlap::Queue]),
        template,
    };
    ScheduleRecord::new(spec, WallMillis(WALL_MS.cast_unsigned()))
}

/// In every third plan the schedules have the job id of a planned job, which clients submit, cancel and retry, too. Drawn
/// separately, so that the rest of the plan does not depend on it.
fn share_job(rng: &mut Rng, schedules: &mut [ScheduleRecord], jobs: &[JobPlan]) {
    if rng.u8(..3) > 0 {
        return;
    }
    let job = choose(rng, jobs);
    for schedule in schedules {
        schedule.spec.template.job_id = Some(job.id.clone());
        if schedule.spec.overlap == Overlap::Queue {
            schedule.spec.overlap = Overlap::Forbid;
        }
        // The ticks of the others are skipped, unless they come before the first submission.
        if rng.u8(..8) > 0 {
            let template = &mut schedule.spec.template;
            template.kind = job.kind.clone();
            template.payload = job.payload();
        }
    }
}

fn actions(rng: &mut Rng, jobs: &[JobPlan], clients: usize, heal_ms: u64) -> Vec<Action> {
    let mut actions = Vec::new();
    let busy = heal_ms * 3 / 4;
    let mut left: Vec<usize> = (0..jobs.len()).collect();
    while !left.is_empty() {
        let together = left.split_off(left.len() - rng.usize(1..=4).min(left.len()));
        let (at_ms, client) = (rng.u64(..busy), rng.usize(..clients));
        for &job in &together {
            let later = |rng: &mut Rng| at_ms + rng.u64(..20_000);
            let mut add = |rng: &mut Rng, chance: u8, call| {
                if rng.u8(..100) < chance {
                    let (at_ms, client) = (later(rng), rng.usize(..clients));
                    actions.push(Action { at_ms, client, call });
                }
            };
            add(rng, 25, PlannedCall::Cancel(job));
            add(rng, 10, PlannedCall::Cancel(job));
            add(rng, 20, PlannedCall::Retry(job));
            add(rng, 10, PlannedCall::Retry(job));
            if rng.u8(..100) < 20 {
                // A job that returns at the end of its lane before every process knows that it was cancelled.
                let (at_ms, client) = (later(rng), rng.usize(..clients));
                let soon = at_ms + rng.u64(..1_500);
                actions.push(Action { at_ms, client, call: PlannedCall::Cancel(job) });
                actions.push(Action { at_ms: soon, client, call: PlannedCall::Retry(job) });
            }
            let mut add = |rng: &mut Rng, chance: u8, call| {
                if rng.u8(..100) < chance {
                    let (at_ms, client) = (later(rng), rng.usize(..clients));
                    actions.push(Action { at_ms, client, call });
                }
            };
            add(rng, 30, PlannedCall::Wait(job));
            add(rng, 10, PlannedCall::SubmitOther(job));
            add(rng, 10, PlannedCall::SubmitIgnoring(job));
            add(rng, 20, PlannedCall::SubmitAgain(job));
            add(rng, 10, PlannedCall::SubmitAgain(job));
            add(rng, 20, PlannedCall::Submit(vec![job]));
        }
        actions.push(Action { at_ms, client, call: PlannedCall::Submit(together) });
    }
    for _ in 0..rng.usize(..3) {
        let (at_ms, client) = (rng.u64(..busy), rng.usize(..clients));
        let kind = Kind::new(*choose(rng, &["sum", "flaky", "slow"])).expect("letters");
        let ms = rng.u64(100..20_000);
        actions.push(Action { at_ms, client, call: PlannedCall::Pause(kind, ms) });
    }
    for _ in 0..rng.usize(..3) {
        let (at_ms, client) = (rng.u64(..heal_ms), rng.usize(..clients));
        actions.push(Action { at_ms, client, call: PlannedCall::DrainWorker(rng.usize(..8)) });
    }
    actions.sort_by_key(|action| action.at_ms);
    actions
}

fn faults(rng: &mut Rng, nodes: usize, clients: usize, timeout: u64, heal_ms: u64) -> Vec<Fault> {
    let target = |rng: &mut Rng| match rng.u8(..10) {
        0..=4 => Target::Node(rng.usize(..nodes)),
        5..=7 => Target::Leader,
        _ => Target::Client(rng.usize(..clients)),
    };
    let node = |rng: &mut Rng| if rng.bool() { Target::Leader } else { Target::Node(rng.usize(..nodes)) };
    let part = |rng: &mut Rng| *choose(rng, &Part::ALL);
    let mut faults: Vec<_> = (0..rng.usize(..=20))
        .map(|_| {
            // Durations around the session timeout, where races are close.
            let long = |rng: &mut Rng| timeout * rng.u64(5..=300) / 100;
            let kind = match rng.u8(..110) {
                0..=19 => FaultKind::Cut {
                    target: target(rng),
                    refused_ms: if rng.bool() { 0 } else { long(rng) },
                    requests_arrive: rng.bool(),
                },
                20..=29 => {
                    let (up, down) = *choose(rng, &[(true, true), (true, false), (false, true)]);
                    FaultKind::Silence { target: target(rng), ms: long(rng), up, down }
                }
                30..=36 => {
                    let delay_ms = rng.u64(20..=timeout / 2);
                    FaultKind::Slow { target: target(rng), ms: long(rng), delay_ms }
                }
                37..=48 => FaultKind::LoseWrite { target: target(rng), applied: rng.u8(..3) > 0 },
                49..=56 => FaultKind::LateWrite { target: target(rng), ms: rng.u64(..3_000) },
                57..=63 => FaultKind::Expire { target: target(rng) },
                64..=73 => FaultKind::Crash { target: node(rng), down_ms: rng.u64(100..10_000) },
                74..=83 => FaultKind::Freeze { target: node(rng), ms: long(rng) },
                84..=89 => FaultKind::Drain {
                    target: node(rng),
                    grace_ms: rng.u64(..3_000),
                    down_ms: rng.u64(100..5_000),
                },
                90..=93 => FaultKind::ChildDies { target: Target::Node(rng.usize(..nodes)) },
                94..=96 => FaultKind::MemberDies,
                97..=101 => FaultKind::PartDies { target: node(rng), part: part(rng) },
                102..=106 => FaultKind::PartStalls { target: node(rng), part: part(rng), ms: long(rng) },
                _ => FaultKind::ServerRestart { down_ms: rng.u64(100..2 * timeout) },
            };
            Fault { at_ms: rng.u64(..heal_ms), kind }
        })
        .collect();
    faults.sort_by_key(|fault| fault.at_ms);
    faults
}

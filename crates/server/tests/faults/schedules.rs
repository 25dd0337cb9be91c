//! Schedules under faults (S8, L4): each due time gets exactly one job, also after changes of the leader, and when the
//! leader is killed at the transaction that creates the job.

use std::time::{Duration, SystemTime};

use bellwether::client::{Accepted, ScheduleRecordView, ScheduleView};
use bellwether::schedule::{Overlap, SkipReason, tick_id};
use bellwether::{JobId, Schedule, ScheduleId, State};
use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::path::SubBucket;
use bellwether_core::schedule::parse_tick;
use bellwether_testkit::{Cut, Fault, Proxy, eventually, eventually_some};

use crate::process::NodeProcess;
use crate::stage::{SOON, Stage, step};

const SECOND: Duration = Duration::from_secs(1);

fn id(name: &str) -> ScheduleId {
    ScheduleId::new(name).unwrap()
}

async fn view(stage: &Stage, name: &str) -> ScheduleView {
    stage.client.schedules().get(&id(name)).await.unwrap()
}

async fn record(stage: &Stage, name: &str) -> ScheduleRecordView {
    view(stage, name).await.record.unwrap()
}

/// Waits until the schedule has created this many jobs.
async fn ticked(stage: &Stage, name: &str, ticks: u64) -> ScheduleRecordView {
    let what = format!("{name} has ticked {ticks} times");
    eventually_some(&what, SOON, async || {
        Some(record(stage, name).await).filter(|record| record.ticked >= ticks)
    })
    .await
}

/// The due times that have a job, in order.
async fn ticks(stage: &Stage, name: &str) -> Vec<SystemTime> {
    let mut ticks = Vec::new();
    let parents = SubBucket::all().map(SubBucket::path).collect::<Vec<_>>();
    for few in parents.chunks(MAX_READ_BATCH) {
        let jobs = stage.zk.children_many(few.to_vec()).await.unwrap();
        let jobs = jobs.iter().flatten().flatten().map(|job| JobId::new(job).unwrap());
        ticks.extend(jobs.filter_map(|job| parse_tick(&job)).filter(|(of, _)| *of == id(name)));
    }
    let mut ticks = ticks.into_iter().map(|(_, at)| at.into()).collect::<Vec<_>>();
    ticks.sort();
    ticks
}

/// Pauses the schedule and asserts that each due time since its creation has one job, which ran once.
async fn each_tick_ran_once(stage: &Stage, name: &str) -> usize {
    let record = stage.client.schedules().pause(&id(name)).await.unwrap().record.unwrap();
    let mut due = record.when.ticks_after(record.created_at, 10_000).unwrap();
    due.retain(|at| *at <= record.cursor);
    assert_eq!(record.skipped, 0, "{record:?}");
    assert_eq!(ticks(stage, name).await, due, "S8");
    assert_eq!(record.ticked, due.len() as u64);
    let jobs = due.iter().map(|at| tick_id(&id(name), *at)).collect::<Vec<_>>();
    let jobs = stage.over(&jobs).await;
    assert!(jobs.iter().all(|job| job.state == State::Succeeded), "{jobs:?}");
    stage.runs.explain(&jobs);
    due.len()
}

fn every_second(stage: &Stage, name: &str) -> Schedule {
    Schedule::every(name, SECOND, stage.runs.unnamed())
}

#[tokio::test]
async fn each_second_has_one_job_while_two_leaders_are_killed() {
    let stage = Stage::set("ticks").await;
    let mut nodes = ["a", "b", "c"].map(|name| Some(stage.node(name).start()));
    stage.workers(3).await;
    stage.leader().await;
    stage.client.schedules().add(&every_second(&stage, "beat")).await.unwrap();
    for killed in 1..=2 {
        ticked(&stage, "beat", 3 * killed).await;
        let leader = stage.leader().await.node;
        let leads = |node: &&mut Option<NodeProcess>| {
            node.as_ref().is_some_and(|node| node.name() == leader.as_str())
        };
        nodes.iter_mut().find(leads).unwrap().take().unwrap().kill();
        eventually("another node is the leader", SOON, async || stage.leader().await.node != leader).await;
    }
    ticked(&stage, "beat", 10).await;
    assert!(each_tick_ran_once(&stage, "beat").await >= 10);
}

/// The leader is killed at the transaction of a tick: before it arrives, or after it is committed and its reply is
/// lost.
async fn killed_at_a_tick(name: &str, fault: impl FnOnce(&Proxy) -> Fault) {
    let stage = Stage::set(name).await;
    let proxy = Proxy::to(&stage.to);
    let mut first = stage.node("first").candidate().behind(&proxy).start();
    let _worker = stage.node("worker").worker().start();
    stage.workers(1).await;
    stage.led_by(&first).await;
    let second = stage.node("second").candidate().start();
    stage.client.schedules().add(&every_second(&stage, "beat")).await.unwrap();
    ticked(&stage, "beat", 1).await;
    fault(&proxy).fired().await;
    first.kill();
    stage.led_by(&second).await;
    let made = record(&stage, "beat").await.ticked;
    ticked(&stage, "beat", made + 3).await;
    each_tick_ran_once(&stage, "beat").await;
}

#[tokio::test]
async fn a_tick_that_is_lost_with_its_leader_is_created_by_the_next() {
    killed_at_a_tick("tick-lost", |proxy| proxy.drop_request_and_cut(step::tick, Cut::Reset)).await;
}

#[tokio::test]
async fn a_tick_whose_leader_is_killed_after_the_commit_is_not_created_again() {
    killed_at_a_tick("tick-unheard", |proxy| proxy.swallow_reply_and_cut(step::tick, Cut::Reset)).await;
}

/// The same leader resolves the lost reply.
#[tokio::test]
async fn a_tick_with_a_lost_reply_is_created_once() {
    let stage = Stage::set("tick-reply").await;
    let proxy = Proxy::to(&stage.to);
    let leader = stage.node("leader").candidate().behind(&proxy).start();
    let _worker = stage.node("worker").worker().start();
    stage.workers(1).await;
    let epoch = stage.led_by(&leader).await.epoch;
    stage.client.schedules().add(&every_second(&stage, "beat")).await.unwrap();
    for cut in [Cut::Fin, Cut::Reset] {
        proxy.swallow_reply_and_cut(step::tick, cut).fired().await;
        let made = record(&stage, "beat").await.ticked;
        ticked(&stage, "beat", made + 2).await;
    }
    each_tick_ran_once(&stage, "beat").await;
    assert_eq!(stage.leader().await.epoch, epoch);
}

#[tokio::test]
async fn a_resumed_schedule_skips_the_ticks_of_its_pause() {
    let stage = Stage::set("schedule-pause").await;
    let _node = stage.node("node").start();
    stage.workers(1).await;
    let schedules = stage.client.schedules();
    schedules.add(&every_second(&stage, "beat")).await.unwrap();
    ticked(&stage, "beat", 2).await;
    let paused = schedules.pause(&id("beat")).await.unwrap().record.unwrap();
    assert!(paused.paused);

    let triggered = schedules.trigger(&id("beat")).await.unwrap();
    assert_eq!(triggered.wait(SOON).await.unwrap().state, State::Succeeded);
    assert_eq!(parse_tick(triggered.id()), None, "a triggered job does not have the id of a tick");
    let slept = paused.cursor + 3 * SECOND;
    eventually("three seconds of the pause have passed", SOON, async || SystemTime::now() > slept).await;
    assert_eq!(record(&stage, "beat").await.cursor, paused.cursor, "a paused schedule does not advance");

    let resumed = schedules.resume(&id("beat")).await.unwrap().record.unwrap();
    let skipped = resumed.last_skipped.unwrap();
    assert_eq!(skipped.reason, SkipReason::Pause);
    assert!(skipped.count >= 3, "{skipped:?}");
    let after = ticked(&stage, "beat", paused.ticked + 2).await;
    let made = ticks(&stage, "beat").await;
    let slept = made.iter().filter(|at| (skipped.from..=skipped.through).contains(*at));
    assert_eq!(slept.count(), 0, "ticks of the pause are not created later");
    assert_eq!(after.skipped, u64::from(skipped.count));
}

#[tokio::test]
async fn overlapping_ticks_are_skipped_or_queued() {
    let stage = Stage::set("overlap").await;
    let _node = stage.node("node").start();
    stage.workers(1).await;
    stage.runs.hold();
    let held = |name, overlap| Schedule::every(name, SECOND, stage.runs.unnamed_held()).overlap(overlap);
    let schedules = stage.client.schedules();
    schedules.add(&held("alone", Overlap::Forbid)).await.unwrap();
    schedules.add(&held("line", Overlap::Queue)).await.unwrap();
    ticked(&stage, "line", 3).await;
    eventually("two ticks are skipped", SOON, async || record(&stage, "alone").await.skipped >= 2).await;
    let alone = record(&stage, "alone").await;
    assert_eq!(alone.ticked, 1, "{alone:?}");
    assert_eq!(alone.last_skipped.unwrap().reason, SkipReason::Overlap);
    // Of the queued ticks, the first runs and the others wait.
    let line = ticks(&stage, "line").await.into_iter().map(|at| tick_id(&id("line"), at));
    let line = line.collect::<Vec<_>>();
    let states = async || {
        let views = stage.client.get_many(&line).await.unwrap();
        views.into_iter().map(|view| view.unwrap().state).collect::<Vec<_>>()
    };
    eventually("the first queued tick runs", SOON, async || states().await[0] == State::Running).await;
    assert!(states().await[1..].iter().all(|state| *state == State::Queued));

    stage.runs.release();
    ticked(&stage, "alone", 2).await;
    schedules.remove(&id("line")).await.unwrap();
    let line = stage.over(&line).await;
    assert!(line.iter().all(|job| job.state == State::Succeeded), "{line:?}");
    let sequence = stage.runs.sequence().into_iter().filter(|job| job.starts_with("line@"));
    assert!(sequence.is_sorted(), "ticks run in order");
}

/// S8: a job that two schedules and a client start runs once at a time.
#[tokio::test]
async fn two_schedules_and_a_trigger_with_one_job_id_start_it_once_at_a_time() {
    let stage = Stage::set("shared").await;
    let _node = stage.node("node").start();
    stage.workers(1).await;
    stage.runs.hold();
    let shared = |name, seconds, job| Schedule::every(name, seconds * SECOND, job).job_id("shared");
    let schedules = stage.client.schedules();
    // Of two ticks at one instant the first by name starts the job.
    schedules.add(&shared("one", 2, stage.runs.unnamed_held())).await.unwrap();
    ticked(&stage, "one", 1).await;
    schedules.add(&shared("two", 1, stage.runs.unnamed_held())).await.unwrap();
    schedules.add(&shared("other", 1, stage.runs.unnamed())).await.unwrap();
    let skipped = async |name| record(&stage, name).await.last_skipped.map(|skipped| skipped.reason);
    eventually("the ticks of both schedules are skipped", SOON, async || {
        let both = [skipped("one").await, skipped("two").await];
        both == [Some(SkipReason::JobOpen); 2] && skipped("other").await == Some(SkipReason::Conflict)
    })
    .await;
    let ticked_by_both = async || record(&stage, "one").await.ticked + record(&stage, "two").await.ticked;
    assert_eq!(ticked_by_both().await, 1, "the job is open");
    let trigger = schedules.trigger(&id("one")).await.unwrap();
    assert_eq!((trigger.id().as_str(), trigger.accepted()), ("shared", Accepted::Same));

    stage.runs.release();
    ticked(&stage, "one", 2).await;
    ticked(&stage, "two", 1).await;
    for name in ["one", "two"] {
        assert_eq!(view(&stage, name).await.last_job(), Some(JobId::new("shared").unwrap()));
        schedules.remove(&id(name)).await.unwrap();
    }
    let job = stage.over(&[JobId::new("shared").unwrap()]).await.remove(0);
    assert_eq!(job.state, State::Succeeded);
    assert!(job.generation >= 3, "one generation per tick: {job:?}");
}

#[tokio::test]
async fn ticks_missed_without_a_leader_follow_the_misfire_policy() {
    use bellwether::schedule::Misfire;
    let stage = Stage::set("misfire").await;
    let schedules = stage.client.schedules();
    let late = |name, misfire| every_second(&stage, name).misfire(misfire).grace(SECOND);
    let three = late("three", Misfire::CatchUp).catch_up_limit(3).catch_up_within(Duration::from_secs(60));
    schedules.add(&late("skip", Misfire::Skip)).await.unwrap();
    schedules.add(&late("once", Misfire::Once)).await.unwrap();
    schedules.add(&three).await.unwrap();
    let added = record(&stage, "three").await.created_at;
    eventually("eight ticks are missed", SOON, async || SystemTime::now() > added + 8 * SECOND).await;
    let _node = stage.node("node").start();
    let made_up = async |name: &str| {
        let skipped =
            eventually_some("some ticks are skipped", SOON, async || record(&stage, name).await.last_skipped)
                .await;
        assert_eq!(skipped.reason, SkipReason::Misfire);
        ticked(&stage, name, 6).await;
        let made = ticks(&stage, name).await;
        assert!(made[0] > skipped.through, "{name}: a skipped tick has no job");
        // The first tick on time is at most a second old when it is created. The number of late ticks depends on the
        // policy.
        assert!(made.windows(2).all(|pair| pair[1] == pair[0] + SECOND), "{name}: {made:?}");
        skipped.count
    };
    assert!(made_up("skip").await >= 6);
    assert!(made_up("once").await >= 5);
    assert!(made_up("three").await >= 3);
}

//! The situations of a cluster. Together they cause every kind of message.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bellwether::client::WorkerChange;
use bellwether::schedule::Overlap;
use bellwether::testing::ClusterNode;
use bellwether::testing::actors::{Fault, Kind, Planned, roster};
use bellwether::{Group, Job, JobId, Kind as JobKind, State, Tag, WorkerId};
use bellwether_core::job::{Assignment, Attempt, Ending, JobRecord};
use bellwether_core::outcome::Outcome;
use bellwether_core::ready::ReadyEntry;
use bellwether_core::segment::MIN_PACKED;
use bellwether_core::time::WallMillis;
use bellwether_core::txn::Op;
use bellwether_core::worker::WorkerInfo;
use bellwether_core::{path, txn, wire};
use bellwether_host::session::SessionStatus;
use bellwether_testkit::{Cut, Request, eventually, op};
use bellwether_zk::Zk;
use uuid::Uuid;

use crate::stage::{Allowed, LEASE, SOON, Stage, job, plain};

/// A way to drive a cluster.
pub(crate) struct Situation {
    pub(crate) name: &'static str,
    /// Whether sweeps are frequent.
    pub(crate) sweeping: bool,
    /// Whether each node is behind a proxy that can drop selected frames.
    pub(crate) proxied: bool,
    pub(crate) drive: for<'a> fn(&'a Stage) -> Pin<Box<dyn Future<Output = ()> + 'a>>,
}

macro_rules! situations {
    ($($name:ident $(($how:ident))?),* $(,)?) => {
        /// The fastest first: a pair is tested in the first situation in which it occurs.
        pub(crate) const SITUATIONS: &[Situation] = &[$(Situation {
            name: stringify!($name),
            sweeping: situations!(@sweeping $($how)?),
            proxied: situations!(@proxied $($how)?),
            drive: |stage| Box::pin($name(stage)),
        }),*];
    };
    (@sweeping sweeping) => { true };
    (@proxied proxied) => { true };
    (@$how:ident $($other:ident)?) => { false };
}

situations![
    work,
    sweeps(sweeping),
    expires,
    pauses,
    cancels,
    groups,
    leases,
    taken,
    ticks,
    leaving,
    drain_grace_exceeded,
    changed_by_operator,
    drained_by_operator,
    cut_off,
    lost_replies,
    expiry,
    unreachable,
    fenced_out,
    stands_again,
    backlog,
    closed_by_another,
    handed_back,
    packed,
    silent_worker,
    lost_worker,
    quarantined_before,
    inbox_removed,
    inbox_forbidden(sweeping),
    close_forbidden,
    slots_taken,
    lost_assignment(proxied),
    lost_close(proxied),
    lost_beat(proxied),
    lost_look(proxied),
    session_panics,
    session_is_killed,
    members_panic,
    members_are_killed,
    removes(sweeping),
];

/// Jobs of all types.
async fn work(stage: &Stage) {
    stage.submit_some("work").await;
    stage.over().await;
}

/// No fault, with frequent listings.
async fn sweeps(stage: &Stage) {
    stage.submit_some("sweeps").await;
    stage.over().await;
    // The jobs may end before the janitor has counted all buckets and reads a record.
    stage.met("janitor", "Read").await;
    stage.met("assigner", "Relist").await;
    stage.met("assigner", "Inbox").await;
}

/// A job that expires because no worker can run it.
async fn expires(stage: &Stage) {
    let job = job("quick", "expires").tags(["nobody"]).expires_in(Duration::from_secs(1));
    stage.submit([job], &[State::Dead]).await;
    stage.over().await;
}

/// An operator pauses a kind for a while.
async fn pauses(stage: &Stage) {
    let (client, kind) = (stage.cluster.client(), JobKind::new("quick").unwrap());
    // Before the watch is set, the pause would be found by the listing.
    stage.met("assigner", "Settings.Watching").await;
    client.pause_kind(&kind, "operator").await.unwrap();
    stage.met("assigner", "Settings.Changes").await;
    stage.submit_some("paused").await;
    client.resume_kind(&kind).await.unwrap();
    stage.over().await;
}

/// A run that ignores its cancellation.
async fn cancels(stage: &Stage) {
    stage.submit([job("stubborn", "stubborn")], &[State::Cancelled]).await;
    stage.runs.begun("stubborn").await;
    stage.cancel("stubborn").await;
    stage.over().await;
}

/// A member of a fail-fast group is cancelled, so the other members are cancelled. No worker serves the kind.
async fn groups(stage: &Stage) {
    let client = stage.cluster.client();
    let group = Group::new("unserved", "group").total(3).fail_fast(true).join(false);
    let group = client.group(group).await.unwrap();
    let mut members = Vec::new();
    for number in 0..3 {
        members.push(group.submit(number, Job::new("unserved", &number)).await.unwrap());
    }
    client.cancel(members[1].id()).await.unwrap();
    let view = group.wait(SOON).await.unwrap();
    assert_eq!((view.cancelled, view.open), (3, 0), "{view:?}");
    stage.over().await;
}

/// A lease that is renewed, with progress reports, and a lease that is not renewed.
async fn leases(stage: &Stage) {
    let telling = job("telling", "telling").lease(LEASE).auto_renew(true);
    stage.submit([telling], &[State::Succeeded]).await;
    stage.submit([job("stubborn", "stubborn").lease(LEASE).max_losses(2)], &[State::Dead]).await;
    stage.met("executor_pool", "Tell.Lapsed").await;
    stage.met("status_reporter", "Beat.Committed").await;
    stage.runs.release();
    stage.over().await;
}

/// The leader takes an attempt from a worker that does not know that its lease was shortened.
async fn taken(stage: &Stage) {
    stage.submit_held("held").await;
    stage.node_of("held").await;
    let zk = stage.onlooker().await;
    let (job, worker) = stage.assigned("held").await;
    let path = path::assignment(worker, &job);
    let node = zk.get(path.clone()).await.unwrap().unwrap();
    let assignment = wire::decode::<Assignment>(&node.data).unwrap();
    let data = wire::encode(&Assignment { lease: LEASE, ..assignment });
    let shorter = Op::Set { path, data, version: node.version };
    assert_eq!(zk.commit(vec![shorter]).await, Outcome::Applied(()));
    stage.met("status_reporter", "Beat.Over").await;
    stage.runs.release();
    stage.over().await;
}

/// Two schedules: the ticks of the first check the previous job, the ticks of the second use a lane.
async fn ticks(stage: &Stage) {
    stage.tick("alone", Overlap::Forbid).await;
    stage.tick("line", Overlap::Queue).await;
    stage.ticked("alone", 2).await;
    stage.ticked("line", 2).await;
    stage.over().await;
}

/// The leader is stopped gracefully while its worker is busy.
async fn leaving(stage: &Stage) {
    let leader = stage.busy_leader().await;
    stage.submit_some("leaving").await;
    let (_, ()) = tokio::join!(leader.stop(), async {
        stage.runs.release();
    });
}

/// The leader loses its connection while jobs run, and reconnects before its term ends.
async fn cut_off(stage: &Stage) {
    let leader = stage.busy_leader().await;
    leader.cut_off();
    disconnected(leader).await;
    stage.runs.release();
    stage.submit_some("cut").await;
    leader.mend();
    stage.over().await;
    // On a busy machine the reconnect may have been too late.
    while !stage.has_met("job_watcher", "Resume") && !stage.is_injected() {
        let leader = stage.leader().await;
        leader.cut_off();
        disconnected(leader).await;
        leader.mend();
        stage.cluster.ready().await.unwrap();
    }
    stage.met("session", "Granted").await;
}

/// The leader assigns jobs and all replies are lost.
async fn lost_replies(stage: &Stage) {
    let leader = stage.leader().await;
    leader.lose_replies();
    stage.submit_some("lost").await;
    disconnected(leader).await;
    leader.mend();
    stage.over().await;
}

/// The leader's session expires.
async fn expiry(stage: &Stage) {
    stage.busy_leader().await.expire().await;
    stage.runs.release();
    stage.over().await;
}

/// The leader is disconnected until its session has ended, and the first attempt to create another session fails.
async fn unreachable(stage: &Stage) {
    let leader = stage.leader().await;
    leader.cut_off();
    stage.submit_some("unreachable").await;
    stage.met("session", "Retry").await;
    leader.mend();
    stage.over().await;
}

/// Another leader has claimed.
async fn fenced_out(stage: &Stage) {
    let zk = stage.onlooker().await;
    // A leader that reads the epoch at this moment learns of the claim before it writes.
    for round in 0.. {
        stage.leader().await;
        let epoch = zk.get(path::EPOCH.to_owned()).await.unwrap().unwrap();
        let claim = Op::Set { path: path::EPOCH.to_owned(), data: epoch.data, version: epoch.version };
        let claimed = zk.commit(vec![claim]).await;
        stage.submit_some(&format!("fenced-{round}")).await;
        stage.over().await;
        if claimed == Outcome::Applied(()) && stage.has_met("election", "FencedOut") {
            return;
        }
    }
}

/// The leader is stopped gracefully, and its runs exceed the drain's grace period.
async fn drain_grace_exceeded(stage: &Stage) {
    stage.busy_leader().await.stop().await;
    stage.runs.release();
    stage.over().await;
}

/// An operator pauses a kind on one worker, and the other worker runs its jobs.
async fn changed_by_operator(stage: &Stage) {
    let client = stage.cluster.client();
    let worker = client.workers().await.unwrap().remove(0).id;
    let pause = WorkerChange::new().pause_kinds([JobKind::new("quick").unwrap()]);
    // A fault may have ended this worker; then it no longer exists.
    let set = client.change_worker(worker, &pause).await.unwrap();
    if set.is_some() {
        stage.met("executor_pool", "Settings").await;
    }
    stage.submit_some("changed").await;
    stage.over().await;
}

/// An operator drains a worker, and the other worker takes the remaining jobs. The drained worker's node continues.
async fn drained_by_operator(stage: &Stage) {
    stage.submit_some("told").await;
    let client = stage.cluster.client();
    let worker = client.workers().await.unwrap().remove(0);
    // A fault may have ended this worker; then it no longer exists.
    client.drain_worker(worker.id).await.unwrap();
    stage.over().await;
    stage.cluster.named(worker.info.unwrap().node.as_str()).unwrap().stop().await;
}

/// The leader steps down and becomes a candidate again.
async fn stands_again(stage: &Stage) {
    let leader = stage.leader().await;
    let parts = leader.node().actors().parts();
    let election = parts.borrow().election.clone();
    if let Some(election) = election {
        election.step_down().await;
        election.stand();
    }
    stage.submit_some("stands").await;
    stage.over().await;
}

/// A new term finds jobs in two slots: an hour of rank is between their priorities. Only the first slot is listed at once.
async fn backlog(stage: &Stage) {
    let client = stage.cluster.client();
    let jobs = [5, 6].map(|priority| Job::new("unserved", &()).priority(priority));
    let jobs = client.submit_many(jobs, |_| {}).await;
    let leader = stage.leader().await;
    let parts = leader.node().actors().parts();
    let election = parts.borrow().election.clone();
    if let Some(election) = election {
        election.step_down().await;
        election.stand();
    }
    stage.met("job_watcher", "Sized").await;
    for job in jobs {
        client.cancel(job.unwrap().id()).await.unwrap();
    }
    stage.over().await;
}

/// An attempt is closed as lost although its live worker runs it.
async fn closed_by_another(stage: &Stage) {
    stage.submit_held("held").await;
    stage.node_of("held").await;
    let zk = stage.onlooker().await;
    let (job, worker) = stage.assigned("held").await;
    let node = zk.get(path::record(&job)).await.unwrap().unwrap();
    let record = wire::decode::<JobRecord>(&node.data).unwrap();
    let attempt = Attempt { number: record.attempts + 1, worker };
    let (lost, next) = record.close(attempt, Ending::Lost, WallMillis(1), 0);
    let close = txn::close(&job, worker, node.version, None, &lost, &next);
    assert_eq!(zk.commit(close).await, Outcome::Applied(()));
    stage.met("executor_pool", "Tell.Zombie").await;
    stage.runs.release();
    stage.over().await;
}

/// A cancelled job is assigned from an outdated record, and an operator deletes its turn.
async fn handed_back(stage: &Stage) {
    stage.submit([job("unserved", "old").lane("lane")], &[State::Cancelled]).await;
    let (zk, job) = (stage.onlooker().await, JobId::new("old").unwrap());
    let node = zk.get(path::record(&job)).await.unwrap().unwrap();
    let record = wire::decode::<JobRecord>(&node.data).unwrap();
    let turn = record.turn().unwrap();
    let worker = stage.cluster.client().workers().await.unwrap().remove(0).id;
    let assignment = Assignment { cancel: true, ..Assignment::new(9, 1, WallMillis(1)) };
    let mut ops = vec![Op::Delete { path: path::turn(&turn, &job), version: None }];
    ops.extend(txn::assign(&ReadyEntry::of_record(&job, &record), worker, &assignment, None));
    assert_eq!(zk.commit(ops).await, Outcome::Applied(()));
    stage.over().await;
}

/// The jobs of a segment take long, so those that have not begun are handed back.
async fn packed(stage: &Stage) {
    stage.submit((0..MIN_PACKED).map(|_| plain("held")), &[State::Succeeded]).await;
    stage.met("executor_pool", "Tell.HandBack").await;
    stage.runs.release();
    stage.over().await;
}

/// A worker gets a segment and never reads it. Later its session ends.
async fn silent_worker(stage: &Stage) {
    let ghost = ghost(stage).await;
    stage.met("lease_watcher", "SegmentRead").await;
    drop(ghost);
    stage.cancel_all().await;
}

/// A worker's session ends after it got a segment.
async fn lost_worker(stage: &Stage) {
    drop(ghost(stage).await);
    stage.met("worker_registry", "Recovery.SegmentRead").await;
    stage.cancel_all().await;
}

/// Registers a worker without a process, and submits a segment that only it can take. Its session ends when the
/// returned connection is dropped.
async fn ghost(stage: &Stage) -> Zk {
    let (zk, worker) = (stage.onlooker().await, WorkerId::new(Uuid::now_v7()));
    let living = stage.cluster.client().workers().await.unwrap()[0].id;
    let info = zk.get(path::worker(living)).await.unwrap().unwrap();
    let info = wire::decode::<WorkerInfo>(&info.data).unwrap();
    let info = WorkerInfo { tags: vec![Tag::new("ghost").unwrap()], former: Vec::new(), ..info };
    assert_eq!(zk.commit(txn::register(worker, &info)).await, Outcome::Applied(()));
    let packed = (0..MIN_PACKED).map(|_| plain("quick").tags(["ghost"]));
    stage.submit(packed, &[State::Cancelled]).await;
    let arrived = async || !zk.children(path::inbox(worker)).await.unwrap().unwrap().is_empty();
    eventually("the segment is assigned, or the fault was injected", SOON, async || {
        stage.is_injected() || arrived().await
    })
    .await;
    zk
}

/// An operator deletes a worker's inbox.
async fn inbox_removed(stage: &Stage) {
    let (zk, path) = (stage.onlooker().await, stage.inbox(None).await);
    assert_eq!(zk.commit(vec![Op::Delete { path, version: None }]).await, Outcome::Applied(()));
    stage.submit_some("removed").await;
    stage.over().await;
}

/// An unreadable job is assigned although it was quarantined before: only its assignment is removed.
async fn quarantined_before(stage: &Stage) {
    let (zk, job) = (stage.onlooker().await, JobId::new("unreadable").unwrap());
    let assignment = format!("{}/{job}", stage.inbox(None).await);
    let create = |path: String, data: &[u8]| Op::Create {
        path,
        data: data.to_vec(),
        lifetime: txn::Lifetime::Persistent,
    };
    let ops = vec![
        create(path::quarantine(&job), b"quarantined before"),
        create(assignment.clone(), b"no assignment"),
    ];
    assert_eq!(zk.commit(ops).await, Outcome::Applied(()));
    eventually("the assignment is removed", SOON, async || {
        zk.get(assignment.clone()).await.expect("an answer").is_none()
    })
    .await;
    stage.submit_some("others").await;
    stage.over().await;
}

/// An operator revokes the permission to list a worker's inbox for a while.
async fn inbox_forbidden(stage: &Stage) {
    let inbox = stage.inbox(None).await;
    stage.allow(&inbox, Allowed::ButReading).await;
    stage.met("inbox_watcher", "Again.Watch").await;
    stage.allow(&inbox, Allowed::All).await;
    stage.submit_some("allowed").await;
    stage.over().await;
}

/// An operator revokes the permission to close a worker's attempts for a while.
async fn close_forbidden(stage: &Stage) {
    stage.submit_held("held").await;
    stage.node_of("held").await;
    let inbox = stage.inbox(Some("held")).await;
    stage.allow(&inbox, Allowed::ButDeleting).await;
    stage.runs.release();
    stage.met("status_reporter", "Tell.Wake").await;
    stage.allow(&inbox, Allowed::All).await;
    stage.over().await;
}

/// Every slot is held by an abandoned run that cannot be stopped.
async fn slots_taken(stage: &Stage) {
    let deaf = (0..4).map(|n| format!("deaf-{n}")).collect::<Vec<_>>();
    // A run succeeds if it is released before its worker has stopped it, for example after a stall.
    let ends = &[State::Cancelled, State::Succeeded];
    stage.submit(deaf.iter().map(|id| job("deaf", id)), ends).await;
    for id in &deaf {
        stage.runs.begun(id).await;
    }
    // The job is assigned when an inbox has room, before the leader learns that no slot is usable.
    stage.submit([job("quick", "waits")], &[State::Succeeded]).await;
    for id in &deaf {
        stage.cancel(id).await;
    }
    eventually("the job is assigned", SOON, async || stage.view("waits").await.worker.is_some()).await;
    stage.met("worker_wing", "Usable").await;
    stage.runs.release();
    stage.over().await;
}

/// The leader's assignment is applied, and its reply is lost.
async fn lost_assignment(stage: &Stage) {
    let assign = |request: &Request<'_>| multi(request, &["/epoch", "/workers/", "/ready/", "/assignments/"]);
    for round in 0.. {
        let proxy = stage.proxy(stage.leader().await);
        let lost = proxy.swallow_reply_and_cut(assign, Cut::Fin);
        stage.submit_some(&format!("assigned-{round}")).await;
        stage.until("the reply is lost", || lost.has_fired()).await;
        stage.over().await;
        // On a busy machine the reconnect may have been too late.
        if stage.has_met("assigner", "Resolved") || stage.is_injected() {
            break;
        }
    }
}

/// A worker's report is applied, its reply is lost, and the request that reads it back is lost, too.
async fn lost_close(stage: &Stage) {
    stage.submit_held("held").await;
    let node = stage.node_of("held").await;
    let close = |request: &Request<'_>| multi(request, &["/jobs/", "/held", "/assignments/"]);
    let lost = stage.proxy(node).swallow_reply_and_cut(close, Cut::Fin);
    let look = |request: &Request<'_>| {
        request.op == op::MULTI_READ && ["/held", "/assignments/"].iter().all(|path| request.mentions(path))
    };
    let unread = stage.proxy(node).drop_request_and_cut(look, Cut::Fin);
    stage.runs.release();
    stage.until("reply and read are lost", || lost.has_fired() && unread.has_fired()).await;
    stage.over().await;
}

/// A lease renewal is applied, its reply is lost, and the request that reads it back is lost, too.
async fn lost_beat(stage: &Stage) {
    let ids = ["held-0", "held-1", "held-2"];
    let held = ids.map(|id| job("held", id).lease(3 * LEASE).auto_renew(true));
    stage.submit(held, &[State::Succeeded]).await;
    let (id, node) = stage.beside_the_leader(&ids).await;
    let job = format!("/{id}");
    let assignment_alone = move |request: &Request<'_>| {
        request.mentions("/assignments/") && request.mentions(&job) && !request.mentions("/jobs/")
    };
    let look = assignment_alone.clone();
    let beat = move |request: &Request<'_>| {
        request.op == op::MULTI && assignment_alone(request) && !request.mentions("/epoch")
    };
    let look = move |request: &Request<'_>| request.op == op::MULTI_READ && look(request);
    let lost = stage.proxy(node).swallow_reply_and_cut(beat, Cut::Fin);
    let unread = stage.proxy(node).drop_request_and_cut(look, Cut::Fin);
    stage.until("reply and read are lost", || lost.has_fired() && unread.has_fired()).await;
    stage.met("status_reporter", "Beat.Read").await;
    stage.runs.release();
    stage.over().await;
}

/// A worker's read of its inbox is not answered.
async fn lost_look(stage: &Stage) {
    let look = |request: &Request<'_>| {
        request.op == op::MULTI_READ && ["/jobs/", "/assignments/"].iter().all(|path| request.mentions(path))
    };
    let lost =
        stage.cluster.nodes().iter().map(|node| stage.proxy(node).drop_request_and_cut(look, Cut::Fin));
    let lost = lost.collect::<Vec<_>>();
    stage.submit_some("looked").await;
    stage.until("the requests are lost", || lost.iter().all(|lost| lost.has_fired())).await;
    stage.over().await;
}

/// A child dies, and its supervisor is notified.
async fn session_panics(stage: &Stage) {
    children_die(stage, Fault::Panic, &[("session", "Heartbeat")]).await;
}

async fn session_is_killed(stage: &Stage) {
    children_die(stage, Fault::Kill, &[("session", "Heartbeat")]).await;
}

async fn members_panic(stage: &Stage) {
    children_die(stage, Fault::Panic, &[("assigner", "Committed"), ("inbox_watcher", "Read")]).await;
}

async fn members_are_killed(stage: &Stage) {
    children_die(stage, Fault::Kill, &[("assigner", "Committed"), ("inbox_watcher", "Read")]).await;
}

/// Records are removed. The janitor keeps each record for at least five seconds.
async fn removes(stage: &Stage) {
    stage.keep(Some(Duration::ZERO)).await;
    let client = stage.cluster.client();
    let job = client.submit(Job::new("unserved", &())).await.unwrap();
    client.cancel(job.id()).await.unwrap();
    let group = Group::new("unserved", "gone").total(1).join(false);
    let group = client.group(group).await.unwrap();
    let member = group.submit(0, Job::new("unserved", &())).await.unwrap();
    client.cancel(member.id()).await.unwrap();
    group.wait(SOON).await.unwrap();
    // They are submitted as a segment.
    let packed = (0..MIN_PACKED).map(|_| Job::new("unserved", &()));
    let packed = client.submit_many(packed, |_| {}).await;
    let packed = packed.into_iter().map(|job| job.unwrap().id().clone()).collect::<Vec<_>>();
    for job in &packed {
        client.cancel(job).await.unwrap();
    }
    let (zk, note) = (stage.onlooker().await, path::quarantine(&JobId::new("nobody").unwrap()));
    let noted = Op::Create { path: note.clone(), data: Vec::new(), lifetime: txn::Lifetime::Persistent };
    assert_eq!(zk.commit(vec![noted]).await, Outcome::Applied(()));
    // The janitor lists the notes in each 16th round, and a round takes a dozen requests with a rest after each.
    eventually("a quarantine note without a record is removed", 2 * SOON, async || {
        zk.get(note.clone()).await.unwrap().is_none()
    })
    .await;
    eventually("the jobs and the group are removed", SOON, async || {
        for job in packed.iter().chain([job.id()]) {
            if client.get(job).await.unwrap().is_some() {
                return false;
            }
        }
        client.get_group(group.id()).await.unwrap().is_none()
    })
    .await;
    stage.until("the janitor receives the outcome", || stage.has_met("janitor", "Committed")).await;
    // The following checks need the records.
    stage.keep(None).await;
}

async fn children_die(stage: &Stage, fault: Fault, children: &[(&'static str, &str)]) {
    let plan = |(actor, kind): &(&'static str, &str)| stage.probe.plan(actor, kind_of(actor, kind), 0, fault);
    let planned = children.iter().map(plan).collect::<Vec<_>>();
    stage.submit_some("children").await;
    stage.until("the children die", || planned.iter().all(Planned::is_injected)).await;
    stage.over().await;
}

fn kind_of(actor: &str, kind: &str) -> Kind {
    let entry = roster().into_iter().find(|entry| entry.actor == actor).unwrap();
    entry.kinds.into_iter().find(|of| of.to_string() == kind).unwrap()
}

fn multi(request: &Request<'_>, paths: &[&str]) -> bool {
    request.op == op::MULTI && paths.iter().all(|path| request.mentions(path))
}

async fn disconnected(node: &ClusterNode) {
    eventually("the connection is lost", SOON, async || {
        let parts = node.node().actors().parts();
        let session = parts.borrow().session.clone();
        session.is_none_or(|session| !matches!(*session.status().borrow(), SessionStatus::Connected(_)))
    })
    .await;
}

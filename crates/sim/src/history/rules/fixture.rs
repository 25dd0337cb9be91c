//! Hand-made histories: a line of a test per event.

mod groups;

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_core::backoff::Backoff;
use bellwether_core::group::{End, GroupRecord, Mark, Parent, Stage};
use bellwether_core::job::identity;
use bellwether_core::job::{
    Assignment, Attempt, Ending, JobRecord, JobState, Membership, Payload, Placement, Policy, Priority, Role,
};
use bellwether_core::name::{GroupId, JobId, Kind, Lane, NodeId, ScheduleId, WorkerId};
use bellwether_core::path;
use bellwether_core::retention::Retention;
use bellwether_core::schedule::{
    Misfire, Missed, Overlap, Passed, PassedOver, ScheduleRecord, ScheduleSpec, Template, When,
};
use bellwether_core::time::WallMillis;
use bellwether_core::txn::{self, Lifetime, Op};
use bellwether_core::wire;
use bellwether_core::worker::{EpochRecord, PauseRecord, WorkerInfo};
use uuid::Uuid;

use crate::history::event::{Answer, Call, Event, EventKind, Leading, Life, RunStep, TxnOp};
use crate::history::truth::{JobPlace, Truth};
use crate::history::{Bounds, Checker, Digest, Violation};

pub(super) const W1: WorkerId = WorkerId::new(Uuid::from_u128(1));
pub(super) const W2: WorkerId = WorkerId::new(Uuid::from_u128(2));

/// The session of the leader; epoch 1 is its.
pub(super) const LEADER: i64 = 0x10;
pub(super) const OTHER: i64 = 0x20;
const CLIENT: i64 = 0x30;

pub(super) const SESSION_END: u64 = 10_500;
const BOUNDS: Bounds = Bounds { session_timeout: Duration::from_secs(10), tick: Duration::from_millis(500) };

pub(super) struct Story {
    events: Vec<Event>,
    now: u64,
    zxid: i64,
    calls: u64,
    truth: Truth,
}

fn session_of(worker: WorkerId) -> i64 {
    0x100 + i64::try_from(worker.uuid().as_u128()).expect("small")
}

fn job_id(job: &str) -> JobId {
    JobId::new(job).expect("a name")
}

fn group_id(group: &str) -> GroupId {
    GroupId::new(group).expect("a name")
}

fn schedule_id(schedule: &str) -> ScheduleId {
    ScheduleId::new(schedule).expect("a name")
}

fn node_id(node: &str) -> NodeId {
    NodeId::new(node).expect("a name")
}

impl Story {
    pub(super) fn new() -> Self {
        let mut story = Self { events: vec![], now: 0, zxid: 0, calls: 0, truth: Truth::default() };
        let data = story.claim_data(LEADER, 1);
        let path = path::EPOCH.to_owned();
        let create = Op::Create { path: path.clone(), data: vec![], lifetime: Lifetime::Persistent };
        story.txn(LEADER, vec![create, Op::Set { path, data, version: 0 }]);
        story
    }

    /// With W1 on node n1 and W2 on node n2.
    pub(super) fn with_workers() -> Self {
        let mut story = Self::new();
        story.register(W1, "n1");
        story.register(W2, "n2");
        story
    }

    pub(super) fn push(&mut self, what: EventKind) {
        self.now += 1;
        self.events.push(Event { at: self.now, what });
    }

    pub(super) fn pass(&mut self, millis: u64) {
        self.now += millis;
    }

    fn txn(&mut self, session: i64, ops: Vec<Op>) {
        self.commit(session, ops.into_iter().map(carried_out).collect());
    }

    fn commit(&mut self, session: i64, ops: Vec<TxnOp>) {
        self.zxid += 1;
        let mut flaws = vec![];
        self.truth.apply(self.zxid, session, &ops, &mut flaws);
        assert_eq!(flaws, Vec::<String>::new(), "a story that cannot be");
        self.push(EventKind::Txn { zxid: self.zxid, session, ops });
    }

    fn record(&self, job: &str) -> (JobRecord, i32) {
        let znode = self.truth.record(&job_id(job)).expect("submitted before");
        (znode.record().expect("readable").clone(), znode.version)
    }

    pub(super) fn submit(&mut self, job: &str) {
        self.submit_record(job, fresh(None));
    }

    pub(super) fn submit_in_lane(&mut self, job: &str, lane: &str) {
        self.submit_record(job, fresh(Some(Lane::new(lane).expect("a name"))));
    }

    /// Ticks every ten seconds from 1970 on.
    pub(super) fn schedule(&mut self, schedule: &str) {
        let template = Template {
            kind: Kind::new("sum").expect("a name"),
            payload: fresh(None).payload,
            policy: Policy::default(),
            placement: Placement::default(),
            priority: Priority::default(),
            expires_after: None,
        };
        let spec = ScheduleSpec {
            when: When::every(Duration::from_secs(10)).expect("an interval"),
            misfire: Misfire::Once,
            grace: Duration::from_secs(60),
            overlap: Overlap::Allow,
            template,
        };
        let record = ScheduleRecord::new(spec, WallMillis(0));
        self.txn(CLIENT, txn::add_schedule(&schedule_id(schedule), &record));
    }

    /// The cursor moves over this second, and these get a job.
    pub(super) fn tick(&mut self, schedule: &str, to: u64, made: &[u64]) {
        let (id, record, version) = self.scheduled(schedule);
        let after = record.clone().ticked(WallMillis(to * 1_000), None);
        let mut ops = txn::set_schedule(&id, version, &after);
        for at in made {
            let (job, made) = record.tick_job(&id, WallMillis(at * 1_000), WallMillis(at * 1_000));
            ops.extend(txn::submit(&job, &made, 0));
        }
        self.txn(LEADER, fenced(Some(1), ops));
    }

    pub(super) fn pass_over(&mut self, schedule: &str, at: u64) {
        let (id, record, version) = self.scheduled(schedule);
        let at = WallMillis(at * 1_000);
        let ticks = Missed { from: at, through: at, count: 1 };
        let after = record.passed(Passed { why: PassedOver::Overlap, ticks });
        self.txn(LEADER, fenced(Some(1), txn::set_schedule(&id, version, &after)));
    }

    fn scheduled(&self, schedule: &str) -> (ScheduleId, ScheduleRecord, i32) {
        let id = schedule_id(schedule);
        let znode = self.truth.get(&path::schedule(&id)).expect("added before");
        (id, znode.schedule().expect("readable").clone(), znode.version)
    }

    /// Another submission of the same.
    pub(super) fn submit_again(&mut self, job: &str) {
        self.submit_record(job, JobRecord { token: Uuid::from_u128(u128::from(self.now)), ..fresh(None) });
    }

    /// Makes a group of jobs of the usual kind, whose members have numbers below 4,096.
    pub(super) fn group(&mut self, group: &str, edit: impl FnOnce(&mut GroupRecord)) {
        let mut record = GroupRecord::new(fresh(None).kind, Uuid::nil(), WallMillis(0));
        edit(&mut record);
        let id = group_id(group);
        self.txn(CLIENT, [txn::make_group(&id, &record), txn::make_chunk(&id, 0)].concat());
    }

    pub(super) fn member(&mut self, group: &str, number: u32) {
        let (id, record, version) = self.grouped(group);
        let membership = Some(Membership { group: id.clone(), role: Role::Member(number), counted: true });
        let job = JobId::member(&record.kind, &id, number).expect("short names");
        let mut ops = txn::submit(&job, &JobRecord { membership, ..fresh(None) }, 0);
        ops.extend(txn::join_group(&id, version, number));
        self.txn(CLIENT, ops);
    }

    pub(super) fn set_group(&mut self, group: &str, edit: impl FnOnce(&mut GroupRecord)) {
        let (id, mut record, version) = self.grouped(group);
        edit(&mut record);
        self.txn(CLIENT, txn::seal(&id, version, &record));
    }

    pub(super) fn set_group_by_leader(&mut self, group: &str, edit: impl FnOnce(&mut GroupRecord)) {
        let (id, mut record, version) = self.grouped(group);
        edit(&mut record);
        self.txn(LEADER, fenced(Some(1), txn::seal(&id, version, &record)));
    }

    /// As the leader does, with the job of the stage that it comes to.
    pub(super) fn advance_group(&mut self, group: &str, edit: impl FnOnce(&mut GroupRecord)) {
        let (id, mut record, version) = self.grouped(group);
        edit(&mut record);
        let job = record.stage_job(&id, WallMillis(0)).expect("short names");
        self.txn(LEADER, txn::advance(1, &id, version, &record, job.as_ref(), None));
    }

    /// Without its group's going on.
    pub(super) fn make_join(&mut self, group: &str) {
        let (id, record, _) = self.grouped(group);
        let joining = GroupRecord { stage: Stage::Joining, ..record };
        let (job, record) = joining.stage_job(&id, WallMillis(0)).expect("short names").expect("a join");
        self.txn(LEADER, fenced(Some(1), txn::submit(&job, &record, 0)));
    }

    pub(super) fn mark_twice(&mut self, group: &str, number: u32) {
        let mark = path::mark(&group_id(group), Mark::Member(number), End::Dead);
        self.txn(CLIENT, vec![Op::Create { path: mark, data: vec![], lifetime: Lifetime::Persistent }]);
    }

    /// Makes the group of a running job's sub-jobs; its name.
    pub(super) fn spawn(&mut self, job: &str, worker: WorkerId) -> String {
        let (record, token) = self.record(job);
        let id = GroupId::of_sub_jobs(&job_id(job), &record);
        let parent = Parent {
            job: job_id(job),
            kind: record.kind.clone(),
            generation: record.generation,
            finish: false,
            membership: record.membership.clone(),
            depth: 0,
        };
        let group = GroupRecord::new(record.kind, Uuid::nil(), WallMillis(0));
        let group = GroupRecord { parent: Some(parent), ..group };
        let assignment = assignment(record.attempts + 1);
        let ops = txn::make_sub_group(&id, &group, &job_id(job), token, worker, 0, &assignment);
        self.txn(CLIENT, [ops, txn::make_chunk(&id, 0)].concat());
        id.to_string()
    }

    fn grouped(&self, group: &str) -> (GroupId, GroupRecord, i32) {
        let id = group_id(group);
        let znode = self.truth.get(&path::group(&id)).expect("made before");
        (id, znode.group().expect("readable").clone(), znode.version)
    }

    /// Says how long records are kept.
    pub(super) fn keep_records(&mut self, time: Duration) {
        let retention = Retention { succeeded: time, cancelled: time, dead: time, ..Retention::default() };
        let (path, data) = (path::RETENTION.to_owned(), wire::encode(&retention));
        self.txn(CLIENT, vec![Op::Create { path, data, lifetime: Lifetime::Persistent }]);
    }

    /// As the janitor does.
    pub(super) fn remove_record(&mut self, job: &str) {
        let (_, version) = self.record(job);
        self.txn(LEADER, fenced(Some(1), vec![txn::remove_record(&job_id(job), version)]));
    }

    pub(super) fn submit_with_times(&mut self, job: &str, not_before: Option<u64>, expires_at: u64) {
        let state = JobState::Open { not_before: not_before.map(WallMillis) };
        let expires_at = Some(WallMillis(expires_at));
        self.submit_record(job, JobRecord { expires_at, state, ..fresh(None) });
    }

    fn submit_record(&mut self, job: &str, record: JobRecord) {
        self.txn(CLIENT, txn::submit(&job_id(job), &record, 0));
    }

    pub(super) fn register(&mut self, worker: WorkerId, node: &str) {
        let info = WorkerInfo {
            node: node_id(node),
            host: "here".to_owned(),
            kinds: vec![Kind::new("sum").expect("a name")],
            leases: BTreeMap::new(),
            slots: 2,
            tags: vec![],
            codec: wire::SCHEMA,
            started_at: WallMillis(0),
            draining: false,
        };
        let inbox_is_left = self.truth.get(&path::inbox(worker)).is_some();
        let ops = txn::register(worker, &info).split_off(usize::from(inbox_is_left));
        self.txn(session_of(worker), ops);
    }

    /// As an operator who has a worker drain; or as nobody should, who takes that back.
    pub(super) fn mark(&mut self, worker: WorkerId, draining: bool) {
        let znode = self.truth.get(&path::worker(worker)).expect("registered before");
        let (info, version) = (znode.worker().expect("readable").clone(), znode.version);
        let data = wire::encode(&WorkerInfo { draining, ..info });
        self.txn(CLIENT, vec![Op::Set { path: path::worker(worker), data, version }]);
    }

    pub(super) fn unregister(&mut self, worker: WorkerId) {
        self.commit(session_of(worker), vec![TxnOp::CloseSession]);
    }

    pub(super) fn assign(&mut self, job: &str, worker: WorkerId) {
        self.assign_by(job, worker, LEADER, Some(1));
    }

    pub(super) fn assign_by(&mut self, job: &str, worker: WorkerId, session: i64, epoch: Option<i32>) {
        let (record, _) = self.record(job);
        let turn = record.turn();
        let ops = txn::assign(&job_id(job), worker, &assignment(record.attempts + 1), turn.as_ref());
        self.txn(session, fenced(epoch, ops));
    }

    pub(super) fn assign_at(&mut self, job: &str, worker: WorkerId, at: WallMillis) {
        let assignment = Assignment { assigned_at: at, ..assignment(self.record(job).0.attempts + 1) };
        let ops = txn::assign(&job_id(job), worker, &assignment, None);
        self.txn(LEADER, fenced(Some(1), ops));
    }

    /// By what the leader knew of old.
    pub(super) fn assign_old(&mut self, job: &str, worker: WorkerId, attempt: u32) {
        let ops = txn::assign(&job_id(job), worker, &assignment(attempt), None);
        self.txn(LEADER, fenced(Some(1), ops));
    }

    /// Beside whatever else is there.
    pub(super) fn create_assignment(&mut self, job: &str, worker: WorkerId, attempt: u32) {
        let ops = txn::assign(&job_id(job), worker, &assignment(attempt), None).split_off(1);
        self.txn(LEADER, fenced(Some(1), ops));
    }

    fn close(&mut self, job: &str, worker: WorkerId, ending: Ending, session: i64, epoch: Option<i32>) {
        let ops = self.close_ops(job, worker, ending);
        self.txn(session, fenced(epoch, ops));
    }

    fn close_ops(&self, job: &str, worker: WorkerId, ending: Ending) -> Vec<Op> {
        let (record, version) = self.record(job);
        let attempt = Attempt { number: record.attempts + 1, worker };
        let assigned = self.truth.get(&path::assignment(worker, &job_id(job)));
        let left = assigned.and_then(|znode| znode.assignment()).cloned();
        let record = left.map_or(record.clone(), |left| record.carry(&left));
        let (closed, next) = record.close(attempt, ending, WallMillis(1_000), 0);
        txn::close(&job_id(job), worker, version, None, &closed, &next)
    }

    pub(super) fn succeed(&mut self, job: &str, worker: WorkerId) {
        self.close(job, worker, succeeded(), session_of(worker), None);
    }

    pub(super) fn succeed_but_keep_turn(&mut self, job: &str, worker: WorkerId) {
        let mut ops = self.close_ops(job, worker, succeeded());
        ops.retain(|op| !op.leaves_turn());
        self.txn(session_of(worker), ops);
    }

    pub(super) fn succeed_but_stay_in_group(&mut self, job: &str, worker: WorkerId) {
        let mut ops = self.close_ops(job, worker, succeeded());
        ops.retain(|op| !op.leaves_group());
        self.txn(session_of(worker), ops);
    }

    /// Without touching an assignment.
    pub(super) fn close_record_of(&mut self, job: &str, worker: WorkerId) {
        let mut ops = self.close_ops(job, worker, succeeded());
        ops.truncate(1);
        self.txn(session_of(worker), ops);
    }

    pub(super) fn fail(&mut self, job: &str, worker: WorkerId) {
        self.close(job, worker, Ending::Failed("no".to_owned()), session_of(worker), None);
    }

    pub(super) fn lose(&mut self, job: &str, worker: WorkerId) {
        self.lose_by(job, worker, LEADER, Some(1));
    }

    pub(super) fn lose_by(&mut self, job: &str, worker: WorkerId, session: i64, epoch: Option<i32>) {
        self.close(job, worker, Ending::Lost, session, epoch);
    }

    pub(super) fn revoke(&mut self, job: &str, worker: WorkerId) {
        self.close(job, worker, Ending::LeaseExpired, LEADER, Some(1));
    }

    pub(super) fn promote(&mut self, job: &str) {
        self.promote_by(job, LEADER, Some(1));
    }

    pub(super) fn promote_by(&mut self, job: &str, session: i64, epoch: Option<i32>) {
        let seen = self.truth.jobs().get(&job_id(job)).expect("submitted before");
        let minute = seen.places.iter().find_map(|place| match place {
            JobPlace::Delayed(minute) => Some(*minute),
            JobPlace::Queue | JobPlace::Inbox(_) | JobPlace::Quarantine => None,
        });
        let entry = self.record(job).0.entry();
        let ops = txn::promote(&job_id(job), minute.expect("delayed before"), &entry);
        self.txn(session, fenced(epoch, ops));
    }

    pub(super) fn cancel(&mut self, job: &str) {
        let (record, version) = self.record(job);
        let ended = record.cancel(WallMillis(1_000));
        self.txn(CLIENT, txn::cancel(&job_id(job), version, &ended, txn::Waiting::Queued));
    }

    pub(super) fn flag(&mut self, job: &str, worker: WorkerId) {
        let attempt = self.record(job).0.attempts + 1;
        self.txn(CLIENT, vec![txn::flag_cancel(&job_id(job), worker, 0, &assignment(attempt))]);
    }

    /// At 1,000 ms.
    pub(super) fn expire(&mut self, job: &str) {
        let (record, version) = self.record(job);
        let ended = record.expire(WallMillis(1_000));
        let ops = txn::cancel(&job_id(job), version, &ended, txn::Waiting::Queued);
        self.txn(LEADER, fenced(Some(1), ops));
    }

    /// By another submission, whose record is edited before.
    pub(super) fn open_again(&mut self, job: &str, edit: impl FnOnce(&mut JobRecord)) {
        let (record, version) = self.record(job);
        let mut ours = identity::again(JobRecord { token: Uuid::from_u128(99), ..fresh(None) }, record);
        edit(&mut ours);
        self.txn(CLIENT, txn::reopen(&job_id(job), version, &ours, 0));
    }

    pub(super) fn reopen(&mut self, job: &str) {
        let (record, version) = self.record(job);
        self.txn(CLIENT, txn::reopen(&job_id(job), version, &record.reopen(), 0));
    }

    /// Pauses the kind of all jobs.
    pub(super) fn pause(&mut self) {
        let pause = PauseRecord { by: "a test".to_owned(), since: WallMillis(0) };
        self.txn(CLIENT, vec![txn::pause(&Kind::new("sum").expect("letters"), &pause)]);
    }

    /// Writes the record anew, as no code of ours would.
    pub(super) fn edit(&mut self, job: &str, edit: impl FnOnce(&mut JobRecord)) {
        let (mut record, version) = self.record(job);
        edit(&mut record);
        let (path, data) = (path::record(&job_id(job)), wire::encode(&record));
        self.txn(CLIENT, vec![Op::Set { path, data, version }]);
    }

    /// Writes these bytes into the record, by somebody's hand; what was there is given back.
    pub(super) fn overwrite(&mut self, job: &str, data: Vec<u8>) -> Vec<u8> {
        let znode = self.truth.record(&job_id(job)).expect("submitted before");
        let (before, version) = (znode.record().map(wire::encode).unwrap_or_default(), znode.version);
        self.txn(CLIENT, vec![Op::Set { path: path::record(&job_id(job)), data, version }]);
        before
    }

    pub(super) fn delete(&mut self, paths: &[&str]) {
        let delete = |path: &&str| TxnOp::Delete { path: (*path).to_owned() };
        self.commit(CLIENT, paths.iter().map(delete).collect());
    }

    pub(super) fn claim(&mut self, session: i64, epoch: i32) {
        self.claim_as(session, session, epoch);
    }

    pub(super) fn claim_as(&mut self, by: i64, owner: i64, epoch: i32) {
        let data = self.claim_data(owner, epoch);
        self.txn(by, vec![Op::Set { path: path::EPOCH.to_owned(), data, version: epoch - 1 }]);
    }

    /// With the token of the epoch that there is.
    pub(super) fn claim_again(&mut self, session: i64) {
        let epoch = self.truth.epoch().expect("claimed before");
        let data = self.claim_data(session, epoch);
        self.txn(session, vec![Op::Set { path: path::EPOCH.to_owned(), data, version: epoch }]);
    }

    fn claim_data(&self, session: i64, epoch: i32) -> Vec<u8> {
        let token = Uuid::from_u128(u128::from(epoch.unsigned_abs()));
        wire::encode(&EpochRecord { node: node_id("n1"), session, token, since: WallMillis(0) })
    }

    pub(super) fn candidate(&mut self, session: i64, number: u32) {
        let path = path::candidate(&format!("{}-n-{number:010}", Uuid::nil()));
        self.txn(session, vec![Op::Create { path, data: vec![], lifetime: Lifetime::Ephemeral }]);
    }

    pub(super) fn node(&mut self, node: &str, is: Life) {
        self.push(EventKind::Node { node: node_id(node), is });
    }

    pub(super) fn leads(&mut self, node: &str, epoch: i32, state: Leading) {
        self.leadership(node, epoch, state, None);
    }

    pub(super) fn leads_until(&mut self, node: &str, epoch: i32, after: u64) {
        self.leadership(node, epoch, Leading::Active, Some(self.now + after));
    }

    pub(super) fn pauses_until(&mut self, node: &str, epoch: i32, after: u64) {
        self.leadership(node, epoch, Leading::Paused, Some(self.now + after));
    }

    fn leadership(&mut self, node: &str, epoch: i32, state: Leading, until: Option<u64>) {
        self.push(EventKind::Leadership { node: node_id(node), session: LEADER, epoch, state, until });
    }

    /// The run of the attempt that is under way.
    pub(super) fn run_of(&self, job: &str, worker: WorkerId) -> EventKind {
        let (record, token) = self.record(job);
        let payload = Digest::of(record.payload.bytes());
        let (generation, attempt) = (record.generation, record.attempts + 1);
        let (job, step) = (job_id(job), RunStep::Started);
        EventKind::Run { worker, job, generation, attempt, token, payload, step }
    }

    pub(super) fn run(&mut self, job: &str, worker: WorkerId, is: RunStep) {
        let mut run = match is {
            RunStep::Started => self.run_of(job, worker),
            RunStep::Ended => self.last_run_of(job),
        };
        if let EventKind::Run { step, .. } = &mut run {
            *step = is;
        }
        self.push(run);
    }

    fn last_run_of(&self, of: &str) -> EventKind {
        let runs = self.events.iter().rev().map(|event| &event.what);
        let mut runs = runs.filter(|what| matches!(what, EventKind::Run { job, .. } if job.as_str() == of));
        runs.next().expect("began before").clone()
    }

    fn invoke(&mut self, what: Call, within: Option<u64>) -> u64 {
        self.calls += 1;
        let deadline = within.map(|within| self.now + within);
        self.push(EventKind::Invoke { client: 1, call: self.calls, what, deadline });
        self.calls
    }

    pub(super) fn invoke_submit(&mut self, job: &str) -> u64 {
        self.invoke_submit_of(job, b"{}")
    }

    pub(super) fn invoke_submit_of(&mut self, job: &str, payload: &[u8]) -> u64 {
        let (kind, payload) = (Kind::new("sum").expect("a name"), Digest::of(payload));
        self.invoke(Call::Submit { job: job_id(job), kind, payload, lane: None }, None)
    }

    pub(super) fn invoke_cancel(&mut self, job: &str) -> u64 {
        self.invoke(Call::Cancel { job: job_id(job) }, None)
    }

    pub(super) fn invoke_drain(&mut self, worker: WorkerId) -> u64 {
        self.invoke(Call::Drain { worker }, None)
    }

    pub(super) fn invoke_read(&mut self, job: &str) -> u64 {
        self.invoke(Call::Read { job: job_id(job) }, None)
    }

    pub(super) fn invoke_read_within(&mut self, job: &str, within: u64) -> u64 {
        self.invoke(Call::Read { job: job_id(job) }, Some(within))
    }

    pub(super) fn answer(&mut self, call: u64, answer: Answer) {
        self.push(EventKind::Return { call, answer });
    }

    fn violations(self) -> Vec<Violation> {
        let mut checker = Checker::new(BOUNDS);
        // As a recorder would bring them.
        let read = |event: &Event| Event::from_line(&event.to_line()).expect("written by this build");
        let mut violations: Vec<_> =
            self.events.iter().flat_map(|event| checker.observe(&read(event))).collect();
        violations.extend(checker.finish(self.now));
        violations
    }

    /// Neither this rule finds anything, nor any that is about safety. A story need not be lively to its end.
    #[track_caller]
    pub(super) fn assert_keeps(self, id: &str) {
        let mut violations = self.violations();
        violations.retain(|violation| violation.id == id || !violation.id.starts_with('L'));
        assert!(violations.is_empty(), "{id} should hold: {violations:#?}");
    }

    /// Whether something that is said so is found, by whichever rule of this id: for one of several.
    pub(super) fn finds(self, id: &str, what: &str) -> bool {
        self.violations().iter().any(|violation| violation.id == id && violation.what.contains(what))
    }

    #[track_caller]
    pub(super) fn assert_breaks(self, id: &str) {
        let violations = self.violations();
        assert!(violations.iter().any(|violation| violation.id == id), "{id} should break: {violations:#?}");
    }
}

fn fresh(lane: Option<Lane>) -> JobRecord {
    JobRecord {
        policy: Policy {
            backoff: Backoff { initial: Duration::from_millis(100), max: Duration::from_secs(1) },
            ..Policy::default()
        },
        placement: Placement { lane, ..Placement::default() },
        ..JobRecord::new(
            Kind::new("sum").expect("a name"),
            Payload::json(*b"{}").expect("small"),
            Uuid::from_u128(1),
            WallMillis(0),
        )
    }
}

fn succeeded() -> Ending {
    Ending::Succeeded(Payload::json(*b"1").expect("small"))
}

fn assignment(attempt: u32) -> Assignment {
    Assignment::new(attempt, 1, WallMillis(0))
}

fn fenced(epoch: Option<i32>, ops: Vec<Op>) -> Vec<Op> {
    epoch.map(txn::fence).into_iter().chain(ops).collect()
}

fn carried_out(op: Op) -> TxnOp {
    match op {
        Op::Check { path, version } => TxnOp::Check { path, version },
        Op::Create { path, data, lifetime } => {
            TxnOp::Create { path, data: data.into(), ephemeral: lifetime == Lifetime::Ephemeral }
        }
        Op::Set { path, data, version } => TxnOp::Set { path, data: data.into(), version: version + 1 },
        Op::Delete { path, version: _ } => TxnOp::Delete { path },
    }
}

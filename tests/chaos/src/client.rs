//! A client that makes every kind of call at random, and records the calls and their answers.
//!
//! Its calls overlap. Ids are reused, with the same payload and with another one. Known jobs are cancelled, retried,
//! read and waited for. The answers are recorded as they are; the checker interprets them.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bellwether::client::{Error, GroupError, IfExists, SubmitError};
use bellwether::{Client, Job, JobId, Kind};
use bellwether_core::name::Lane;
use bellwether_core::segment::{MIN_PACKED, MemberId};
use bellwether_sim::answer;
use bellwether_sim::history::{Answer, Call, Digest, EventKind};
use clap::Args;
use fastrand::Rng;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;
use crate::record::{Recorder, now};
use crate::roster::{self, Roster, Sealed};
use crate::work::{BLOCK, Task, WORK};

/// Deadline of every call except a wait.
const DEADLINE: Duration = Duration::from_secs(6);
/// Additional delay on a machine that runs all processes of a run.
const LATE: Duration = Duration::from_millis(750);
/// Time limit of a wait for a job.
const WAIT: Duration = Duration::from_secs(4);
const SESSION: Duration = Duration::from_secs(4);
/// Maximum number of concurrent calls; others are queued.
const OPEN_CALLS: usize = 48;
/// Number of lanes, shared by all clients.
const LANES: u32 = 6;
/// Most jobs that a client submits together.
const TOGETHER: usize = 30;
/// Number of jobs that a client remembers for later calls.
const KNOWN: usize = 400;
/// Number of groups that a client remembers. A group is open for seconds, so only the newest ones are of use.
const GROUPS_KNOWN: usize = 4;

/// A client process of a chaos run.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// ZooKeeper connect string.
    #[arg(long)]
    pub(crate) zookeeper: String,
    /// File for the records.
    #[arg(long)]
    pub(crate) records: PathBuf,
    /// Number of the client.
    #[arg(long)]
    pub(crate) number: u32,
    /// Seed of its calls.
    #[arg(long)]
    pub(crate) seed: u64,
    /// Calls per second.
    #[arg(long)]
    pub(crate) rate: u32,
}

/// Runs until SIGTERM.
pub(crate) async fn process(arguments: Arguments) -> Result<(), Failure> {
    let mut terminate = signal(SignalKind::terminate())?;
    let stop = CancellationToken::new();
    let asked = stop.clone();
    let run = tokio::spawn(run(arguments, stop));
    terminate.recv().await;
    asked.cancel();
    run.await?
}

/// Runs until it is stopped, and then until its last call is answered.
pub(crate) async fn run(arguments: Arguments, stop: CancellationToken) -> Result<(), Failure> {
    let mut rng = Rng::with_seed(arguments.seed);
    let caller = loop {
        match Caller::connect(&arguments.zookeeper, &arguments.records, arguments.number).await {
            Ok(caller) => break Arc::new(caller),
            // No call was made yet; a fault is active.
            Err(error) => tracing::info!(%error, "the client cannot connect yet"),
        }
        if stop.is_cancelled() {
            return Ok(());
        }
    };
    let mut calls = JoinSet::new();
    let mean = 1_000 / u64::from(arguments.rate.max(1));
    loop {
        let pause = tokio::time::sleep(Duration::from_millis(rng.u64(0..=2 * mean)));
        tokio::select! {
            () = pause => {}
            () = stop.cancelled() => break,
        }
        while calls.len() >= OPEN_CALLS {
            if let Some(done) = calls.join_next().await {
                done?;
            }
        }
        while let Some(done) = calls.try_join_next() {
            done?;
        }
        calls.spawn(Arc::clone(&caller).call(rng.fork()));
    }
    while let Some(done) = calls.join_next().await {
        done?;
    }
    Ok(())
}

/// A job to submit.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    pub(crate) id: JobId,
    pub(crate) kind: &'static str,
    pub(crate) payload: String,
    lane: Option<u32>,
    attempts: u32,
    backoff: Duration,
    priority: u8,
    delay: Option<Duration>,
    expires_in: Option<Duration>,
    if_exists: IfExists,
}

impl Wish {
    pub(crate) fn new(id: &str, kind: &'static str, ms: u64, fails: u32) -> Self {
        let task = Task::new(ms, fails);
        Self {
            id: JobId::new(id).expect("the id has valid characters"),
            kind,
            payload: serde_json::to_string(&task).expect("plain fields are JSON"),
            lane: None,
            attempts: 5,
            backoff: Duration::from_millis(50),
            priority: 5,
            delay: None,
            expires_in: None,
            if_exists: IfExists::Same,
        }
    }
}

/// A client that records its calls.
pub(crate) struct Caller {
    pub(crate) client: Client,
    recorder: Recorder,
    number: u32,
    next: AtomicU64,
    known: Mutex<Vec<Wish>>,
    groups: Mutex<VecDeque<Roster>>,
}

impl Caller {
    pub(crate) async fn connect(zookeeper: &str, records: &Path, number: u32) -> Result<Self, Failure> {
        let recorder = Recorder::open(records)?;
        let client = Client::builder(zookeeper).session_timeout(SESSION).deadline(DEADLINE);
        let client = client.connect().await?;
        let (known, groups) = (Mutex::default(), Mutex::default());
        Ok(Self { client, recorder, number, next: AtomicU64::new(0), known, groups })
    }

    async fn call(self: Arc<Self>, mut rng: Rng) {
        let known = self.known(&mut rng);
        match (rng.u32(0..100), known) {
            (0..4, _) => self.submit_together(&mut rng).await,
            (4..62, _) | (_, None) => {
                let wish = self.wish(&mut rng);
                self.remember(&mut rng, wish.clone());
                let id = wish.id.clone();
                self.submit(wish).await;
                if rng.u32(0..10) == 0 {
                    self.wait(id).await;
                }
            }
            (62..72, Some(wish)) if MemberId::of_job(&wish.id).is_some() => self.read(wish.id).await,
            (62..68, Some(wish)) => {
                self.submit(wish).await;
            }
            (68..70, Some(wish)) => {
                let if_exists = if rng.bool() { IfExists::Same } else { IfExists::Ignore };
                self.submit(Wish { payload: format!("{} ", wish.payload), if_exists, ..wish }).await;
            }
            (70..72, Some(wish)) => {
                // A new generation cannot be delayed.
                self.submit(Wish { if_exists: IfExists::Again, delay: None, ..wish }).await;
            }
            (72..80, Some(wish)) => self.cancel(wish.id).await,
            (80..86, Some(wish)) => self.retry(wish.id).await,
            (86..91, Some(wish)) => self.read(wish.id).await,
            (91..94, Some(_)) => {
                let roster = Roster::fresh(self.number, &mut rng);
                self.remember_group(roster.clone());
                self.generate(&roster).await;
            }
            (94..97, Some(_)) => self.call_group(&mut rng).await,
            (97, Some(_)) => self.pause().await,
            (_, Some(_)) => {
                self.resume().await;
            }
        }
    }

    /// Makes a random call about a known group.
    async fn call_group(&self, rng: &mut Rng) {
        let known = {
            let groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
            rng.choice(groups.iter()).cloned()
        };
        let Some(roster) = known else { return };
        let job = roster.some_job(rng);
        match rng.u32(0..10) {
            0..3 => {
                self.generate(&roster).await;
            }
            3..6 => {
                self.cancel(job.clone()).await;
                // If the group is still open, it waits for the member again.
                self.retry(job).await;
            }
            6 => self.cancel(job).await,
            7 => self.retry(job).await,
            _ => self.read(job).await,
        }
    }

    fn remember_group(&self, roster: Roster) {
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        groups.push_back(roster);
        if groups.len() > GROUPS_KNOWN {
            groups.pop_front();
        }
    }

    fn wish(&self, rng: &mut Rng) -> Wish {
        let ms = if rng.u32(0..20) == 0 { rng.u64(500..3_000) } else { rng.u64(0..150) };
        let fails = if rng.u32(0..8) == 0 { rng.u32(1..4) } else { 0 };
        let padding = (0..rng.usize(0..200)).map(|_| rng.alphanumeric()).collect();
        let kind = if rng.u32(0..12) == 0 { BLOCK } else { WORK };
        let lane = (kind == WORK && rng.u32(0..6) == 0).then(|| rng.u32(0..LANES));
        // A long job would block its lane.
        let ms = if lane.is_some() { ms.min(100) } else { ms };
        let payload =
            serde_json::to_string(&Task { padding, ..Task::new(ms, fails) }).expect("plain fields are JSON");
        let id = format!("c{}-{}", self.number, rng.u32(..));
        Wish {
            payload,
            lane,
            attempts: rng.u32(2..6),
            backoff: Duration::from_millis(rng.u64(20..400)),
            priority: rng.u8(..10),
            delay: (rng.u32(0..10) == 0).then(|| Duration::from_millis(rng.u64(50..5_000))),
            // Longer than any delay, and sometimes shorter than a fault.
            expires_in: (rng.u32(0..10) == 0).then(|| Duration::from_millis(rng.u64(6_000..30_000))),
            ..Wish::new(&id, kind, 0, 0)
        }
    }

    fn known(&self, rng: &mut Rng) -> Option<Wish> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        rng.choice(known.iter()).cloned()
    }

    fn remember(&self, rng: &mut Rng, wish: Wish) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < KNOWN {
            known.push(wish);
        } else {
            let forget = rng.usize(..known.len());
            known[forget] = wish;
        }
    }

    fn invoke(&self, what: Call, deadline: Option<Duration>) -> u64 {
        let call = (u64::from(self.number) << 32) | self.next.fetch_add(1, Ordering::Relaxed);
        let by =
            |within: Duration| now() + u64::try_from((within + LATE).as_millis()).expect("a short deadline");
        let deadline = deadline.map(by);
        self.recorder.record(EventKind::Invoke { client: self.number, call, what, deadline });
        call
    }

    fn told(&self, call: u64, answer: Answer) {
        self.recorder.record(EventKind::Return { call, answer });
    }

    /// Submits a job. Returns `true` if it was accepted.
    pub(crate) async fn submit(&self, wish: Wish) -> bool {
        let lane = wish.lane.map(|lane| Lane::new(format!("lane-{lane}")).expect("letters and digits"));
        let kind = Kind::new(wish.kind).expect("letters only");
        let job = Job::json(wish.kind, wish.payload.clone());
        let job =
            job.id(wish.id.as_str()).max_attempts(wish.attempts).backoff(wish.backoff, wish.backoff * 4);
        let job = lane.iter().fold(job, |job, lane| job.lane(lane.as_str()));
        let job = wish.delay.into_iter().fold(job, Job::delay);
        let job = wish.expires_in.into_iter().fold(job, Job::expires_in);
        let job = job.priority(wish.priority).if_exists(wish.if_exists);
        let payload = Digest::of(wish.payload.as_bytes());
        let call = self.invoke(Call::Submit { job: wish.id, kind, payload, lane }, Some(DEADLINE));
        let answer = answer::submitted(&self.client.submit(job).await);
        let accepted = answer == Answer::Accepted;
        self.told(call, answer);
        accepted
    }

    /// Submits jobs without ids, which become a segment. Their ids are known when they are accepted, so an unknown outcome is not
    /// recorded.
    async fn submit_together(&self, rng: &mut Rng) {
        let like = Wish { lane: None, delay: None, expires_in: None, ..self.wish(rng) };
        let payloads = (0..rng.usize(usize::from(MIN_PACKED)..=TOGETHER)).map(|_| self.wish(rng).payload);
        let payloads = payloads.collect::<Vec<_>>();
        let jobs = payloads.iter().map(|payload| {
            let job = Job::json(like.kind, payload.clone()).max_attempts(like.attempts);
            job.backoff(like.backoff, like.backoff * 4).priority(like.priority)
        });
        let answers = self.client.submit_many(jobs.collect::<Vec<_>>(), |_| {}).await;
        for (payload, answer) in payloads.into_iter().zip(answers) {
            let Ok(handle) = answer else { continue };
            let what = Call::Submit {
                job: handle.id().clone(),
                kind: Kind::new(like.kind).expect("letters only"),
                payload: Digest::of(payload.as_bytes()),
                lane: None,
            };
            let call = self.invoke(what, None);
            self.told(call, Answer::Accepted);
            self.remember(rng, Wish { id: handle.id().clone(), payload, ..like.clone() });
        }
    }

    /// Creates a group and submits all its members, for the first time or again. Returns `true` if nothing is missing.
    pub(crate) async fn generate(&self, roster: &Roster) -> bool {
        let group = roster.group().expect("short names and few members");
        let group = match self.client.group(group).await {
            Ok(group) => group,
            Err(error) => return self.no_group(roster, &error),
        };
        let mut all = true;
        for (number, payload) in roster.members() {
            let job = roster::member(roster.kind, payload.clone());
            let last = roster.sealed == Sealed::WithLast && number + 1 == roster.total();
            let what = Call::Submit {
                job: roster.member(number),
                kind: roster.kind(),
                payload: Digest::of(payload.as_bytes()),
                lane: None,
            };
            // The last member takes two calls.
            let call = self.invoke(what, Some(if last { 2 * DEADLINE } else { DEADLINE }));
            let done =
                if last { group.submit_last(number, job).await } else { group.submit(number, job).await };
            self.told(call, answer::submitted(&done));
            // A closed group ends without this member.
            all &= matches!(done, Ok(_) | Err(SubmitError::Group(GroupError::Closed { .. })));
        }
        match roster.sealed {
            Sealed::First | Sealed::WithLast => all,
            // The group must be complete first: a sealed group waits for all its members.
            Sealed::After if !all => false,
            Sealed::After => match group.seal(roster.total()).await {
                Ok(()) => true,
                Err(error) => self.no_group(roster, &error),
            },
        }
    }

    /// Handles an error of a call for a group. All clients derive a group from its name, so another error is a
    /// violation.
    fn no_group(&self, roster: &Roster, error: &Error) -> bool {
        let id = &roster.id;
        tracing::info!(%id, %error, "the client does not know whether the group is complete");
        match error {
            // The group was removed after its retention in the meantime.
            Error::Group(GroupError::NotFound { .. }) => {}
            Error::Group(error) => {
                panic!("S11: group {id} differs from the group derived from its name: {error}")
            }
            _ => {}
        }
        false
    }

    async fn cancel(&self, job: JobId) {
        let call = self.invoke(Call::Cancel { job: job.clone() }, Some(DEADLINE));
        let done = self.client.cancel(&job).await;
        self.told(call, answer::cancelled(done));
    }

    async fn retry(&self, job: JobId) {
        let call = self.invoke(Call::Retry { job: job.clone() }, Some(DEADLINE));
        let done = self.client.retry(&job).await;
        self.told(call, answer::retried(done));
    }

    /// Pauses the kind until another client resumes it. The transactions show the result.
    async fn pause(&self) {
        if let Err(error) = self.client.pause_kind(&pausable(), "a chaos run").await {
            tracing::info!(%error, "the client does not know whether the kind is paused");
        }
    }

    /// Resumes the kind. Returns `true` if that is confirmed.
    pub(crate) async fn resume(&self) -> bool {
        self.client.resume_kind(&pausable()).await.is_ok()
    }

    async fn read(&self, job: JobId) {
        let call = self.invoke(Call::Read { job: job.clone(), generation: None }, Some(DEADLINE));
        let done = self.client.get(&job).await;
        self.told(call, answer::read(done));
    }

    async fn wait(&self, job: JobId) {
        let call = self.invoke(Call::Read { job: job.clone(), generation: None }, None);
        let done = self.client.wait(&job, WAIT).await;
        self.told(call, answer::waited(done));
    }
}

/// The kind that clients pause. No recovery of a fault waits for it.
fn pausable() -> Kind {
    Kind::new(BLOCK).expect("letters only")
}

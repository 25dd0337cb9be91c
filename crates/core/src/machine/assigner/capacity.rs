//! Free slots of a worker.
//!
//! The names in the inbox are authoritative. The inbox is listed after it may have changed, and jobs assigned
//! after the list was requested are added. Requests of one session are served in order, so a list contains all batches
//! sent before it and none sent after it. This errs on the safe side: a job counts from when it is planned until a list
//! requested later no longer contains it.
//!
//! Each [`Plan`] counts alone. A job can be planned twice for one worker, because its entry may be read again while its
//! batch is in flight. Then one batch is applied and the other one rejected, and only the plan of the rejected one is
//! given back.
//!
//! The first list also reads the assignments, because earlier leaders made them: so this leader knows every job in the
//! inbox that is isolated (S20). All later assignments are its own, except those that a worker takes over: it does so
//! while it offers no slot ([`takeover`](crate::takeover)). So a worker that begins to offer slots is read again, by a list that
//! is requested after that.
//!
//! A worker whose inbox cannot be listed (access denied, too many names) gets no jobs, and the other workers are not
//! affected. This is safe: a job in that inbox has no queue entry, so it is not assigned twice; its turn in its lane stays
//! until it has ended, whatever is known about inboxes; and isolation only concerns jobs of the same worker.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::time::Duration;

use super::event::InboxContents;
use crate::job::Isolation;
use crate::name::{JobId, Kind, Tag, WorkerId};
use crate::placement::PlacementWorker;
use crate::segment::SegmentId;
use crate::time::Millis;
use crate::worker::WorkerInfo;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Capacity {
    registration: Option<(WorkerInfo, i32)>,
    listing: Listing,
    /// The content of the inbox at the last list; `None` before the first list.
    held: Option<Held>,
    /// The isolated jobs among those held.
    isolated: BTreeMap<JobId, Isolation>,
    /// The plans that no answered list covers, and the number of members if it is a segment; otherwise 1.
    planned: BTreeMap<Plan, u8>,
    /// The slots that the held and the planned ones use.
    used: usize,
    /// The isolated jobs among those planned.
    planned_isolated: BTreeMap<Plan, (JobId, Isolation)>,
    last_plan: Plan,
    /// The last plan when the latest list was requested: that list covers it and all plans before it.
    covered: Plan,
    /// The last list was refused: the number of used slots, and which jobs are isolated, are unknown.
    refused: bool,
    /// When the worker was found to hang, and the version of its registration at that time.
    hangs: Option<(Millis, i32)>,
}

/// One decision to assign a job to this worker, in the order in which they are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(super) struct Plan(u64);

/// The content of an inbox.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Held {
    jobs: usize,
    /// The number of members of each segment.
    segments: Vec<u8>,
}

impl Held {
    fn of(names: &[String]) -> Self {
        let segment = |name: &String| Some(SegmentId::of_job(&JobId::new(name).ok()?)?.count());
        let segments = names.iter().filter_map(segment).collect::<Vec<_>>();
        Self { jobs: names.len() - segments.len(), segments }
    }
}

/// How long a hung worker gets no jobs, unless it registers again. It may still hang, and then each job assigned to it
/// is delayed by a lease. The first sweep after this time lifts the restriction.
pub const SHUNNED: Duration = Duration::from_secs(60);

/// Whether the last list is still current.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Listing {
    Fresh,
    Stale,
    InFlight { answer: Answer },
}

/// The use of the answer to the list in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Answer {
    Current,
    /// The inbox may have changed since the request.
    Stale,
    /// Requested before the worker began to offer slots: it may lack jobs that the leader did not assign.
    Outdated,
}

/// How to list an inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    /// Its names, and the assignments.
    Read,
    /// Only its names.
    Names,
}

impl Capacity {
    pub(super) fn unknown() -> Self {
        Self {
            registration: None,
            listing: Listing::Stale,
            held: None,
            isolated: BTreeMap::new(),
            planned: BTreeMap::new(),
            used: 0,
            planned_isolated: BTreeMap::new(),
            last_plan: Plan::default(),
            covered: Plan::default(),
            refused: false,
            hangs: None,
        }
    }

    pub(super) fn register(&mut self, info: WorkerInfo, version: i32) {
        // A worker that sets its registration does not hang.
        self.hangs = self.hangs.filter(|(_, then)| *then == version);
        let offered = self.registration.as_ref().is_none_or(|(info, _)| info.slots > 0);
        if !offered && info.slots > 0 {
            self.held = None;
            self.listing = match self.listing {
                Listing::Fresh | Listing::Stale => Listing::Stale,
                Listing::InFlight { .. } => Listing::InFlight { answer: Answer::Outdated },
            };
        }
        self.registration = Some((info, version));
        self.recount();
    }

    pub(super) fn hangs(&mut self, now: Millis) {
        self.hangs = Some((now, self.version()));
    }

    /// Lifts the restriction of a hung worker after [`SHUNNED`].
    pub(super) fn forgive(&mut self, now: Millis) {
        self.hangs = self.hangs.filter(|(since, _)| now.since(*since) < SHUNNED);
    }

    /// Assigns no jobs to the worker until it registers again.
    pub(super) fn close(&mut self) {
        self.registration = None;
        self.recount();
    }

    pub(super) fn version(&self) -> i32 {
        self.registration.as_ref().map_or(-1, |(_, version)| *version)
    }

    /// Returns the lease of a kind with its own setting.
    pub(super) fn lease(&self, kind: &Kind) -> Option<Duration> {
        self.registration.as_ref()?.0.leases.get(kind).copied()
    }

    pub(super) fn slots(&self) -> usize {
        self.registration.as_ref().map_or(0, |(info, _)| info.open_slots())
    }

    /// The used slots.
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// The slots of a job, or of a segment with so many members. A large segment counts as half of the worker: so one runs while the
    /// next one is on its way.
    fn width(&self, members: u8) -> usize {
        usize::from(members).min(self.slots().div_ceil(2)).max(1)
    }

    /// The number of slots, the content of the inbox or the plans have changed.
    fn recount(&mut self) {
        let held = self.held.as_ref();
        let segments = held.map_or(&[][..], |held| &held.segments);
        let parts = segments.iter().chain(self.planned.values()).map(|members| self.width(*members));
        self.used = held.map_or(0, |held| held.jobs) + parts.sum::<usize>();
    }

    /// Whether the worker serves such jobs, although it may have no free slot now.
    pub(super) fn serves(&self, kind: &Kind, tags: &[Tag]) -> bool {
        let able = self.registration.as_ref().is_some_and(|(info, _)| {
            !info.draining && info.serves(kind) && info.offers(tags) && info.open_slots() > 0
        });
        able && self.hangs.is_none() && self.held.is_some()
    }

    pub(super) fn can_take(&self, kind: &Kind, tags: &[Tag]) -> bool {
        self.serves(kind, tags) && self.used() < self.slots()
    }

    /// Returns the worker as a custom placement strategy sees it; `None` if it is not registered.
    pub(super) fn offered(&self, id: WorkerId) -> Option<PlacementWorker<'_>> {
        let (info, _) = self.registration.as_ref()?;
        let (host, tags, used) = (info.host.as_str(), info.offered_tags(), self.used());
        Some(PlacementWorker { host, tags, used, ..PlacementWorker::new(id, &info.node, self.slots()) })
    }

    /// Whether the worker is registered and the answer to its first list is missing.
    pub(super) fn is_new(&self) -> bool {
        self.registration.is_some() && self.held.is_none() && !self.refused
    }

    /// Compares by the share of used slots: `used/slots`, compared without division.
    pub(super) fn load_cmp(&self, other: &Self) -> Ordering {
        (self.used() * other.slots()).cmp(&(other.used() * self.slots()))
    }

    /// Returns the number of isolated jobs.
    pub(super) fn isolated(&self) -> usize {
        self.isolated.len() + self.planned_isolated.len()
    }

    /// Whether a job has the worker to itself.
    pub(super) fn is_exclusive(&self) -> bool {
        let planned = self.planned_isolated.values().map(|(_, isolation)| isolation);
        self.isolated.values().chain(planned).any(|isolation| *isolation == Isolation::Alone)
    }

    pub(super) fn take(&mut self, job: &JobId, isolation: Isolation) -> Plan {
        self.last_plan.0 += 1;
        let members = SegmentId::of_job(job).map_or(1, SegmentId::count);
        self.planned.insert(self.last_plan, members);
        self.used += self.width(members);
        if isolation != Isolation::Shared {
            self.planned_isolated.insert(self.last_plan, (job.clone(), isolation));
        }
        self.last_plan
    }

    pub(super) fn give_back(&mut self, plan: Plan) {
        if let Some(members) = self.planned.remove(&plan) {
            self.used -= self.width(members);
        }
        self.planned_isolated.remove(&plan);
    }

    /// The inbox cannot be listed: the worker gets no jobs until a list is answered. The next sweep lists it again, and no
    /// earlier event, so that a refused inbox that changes often costs nothing.
    pub(super) fn refused(&mut self) {
        (self.refused, self.held, self.listing) = (true, None, Listing::Fresh);
        self.recount();
    }

    /// Whether the last list was refused.
    pub(super) fn is_refused(&self) -> bool {
        self.refused
    }

    /// The inbox may have changed.
    pub(super) fn changed(&mut self) {
        if !self.refused {
            self.relist();
        }
    }

    /// Requests a list.
    pub(super) fn relist(&mut self) {
        self.listing = match self.listing {
            Listing::Fresh | Listing::Stale => Listing::Stale,
            Listing::InFlight { answer: Answer::Current | Answer::Stale } => {
                Listing::InFlight { answer: Answer::Stale }
            }
            Listing::InFlight { answer: Answer::Outdated } => self.listing,
        };
    }

    /// Whether the inbox may have changed since it was listed, and is not being listed.
    pub(super) fn is_stale(&self) -> bool {
        self.listing == Listing::Stale
    }

    /// Whether to list the inbox now, or to read it if it was not listed yet. Unless `eager`, a worker with many free
    /// slots needs no list: planned jobs are counted until then.
    pub(super) fn wants_list(&mut self, eager: bool) -> Option<List> {
        let worth = eager || self.held.is_none() || self.used() * 2 >= self.slots() || self.isolated() > 0;
        let due = self.listing == Listing::Stale && worth;
        if due {
            self.listing = Listing::InFlight { answer: Answer::Current };
            self.covered = self.last_plan;
        }
        due.then(|| if self.held.is_none() { List::Read } else { List::Names })
    }

    /// Handles the first list, or the first after a refused one.
    pub(super) fn read(&mut self, held: Option<InboxContents>) {
        let held = held.filter(|_| !self.is_outdated());
        self.answered(held.as_ref().map(|held| Held::of(&held.names)));
        if let Some(held) = held {
            self.isolated = held.isolated;
        }
    }

    /// Handles a later list: the names of the assignments.
    pub(super) fn listed(&mut self, held: Option<&[String]>) {
        let held = held.filter(|_| !self.is_outdated());
        self.answered(held.map(Held::of));
        if let Some(held) = held {
            self.isolated.retain(|job, _| held.iter().any(|name| name == job.as_str()));
        }
    }

    fn is_outdated(&self) -> bool {
        matches!(self.listing, Listing::InFlight { answer: Answer::Outdated })
    }

    fn answered(&mut self, held: Option<Held>) {
        let stale = matches!(self.listing, Listing::InFlight { answer: Answer::Stale }) || held.is_none();
        if let Some(held) = held {
            (self.held, self.refused) = (Some(held), false);
            let after = Plan(self.covered.0 + 1);
            self.planned = self.planned.split_off(&after);
            let later = self.planned_isolated.split_off(&after);
            self.isolated.extend(std::mem::replace(&mut self.planned_isolated, later).into_values());
            self.recount();
        }
        self.listing = if stale { Listing::Stale } else { Listing::Fresh };
    }
}

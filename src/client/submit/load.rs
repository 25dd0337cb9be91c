//! What a round sends: segments and single submissions.

use bellwether_core::txn::Batch;

use super::super::session::Session;
use super::Submission;
use super::packed::Packed;
use super::packing::pack;
use super::parts::Parts;

/// Segments and single submissions, in the order in which a batch has them.
#[derive(Debug, Default)]
pub(super) struct Load {
    pub(super) segments: Vec<Packed>,
    pub(super) jobs: Vec<Submission>,
}

/// The owner of a group of operations in a batch.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a batch has at most a hundred, and a box for each job costs an allocation"
)]
pub(super) enum Item {
    Segment(Packed),
    Job(Submission),
}

impl Load {
    /// What a batch has sent: its segments are its first groups.
    pub(super) fn of(batch: Batch<Item>) -> Self {
        let mut load = Self::default();
        batch.into_groups().into_iter().for_each(|(item, _)| load.take_back(item));
        load
    }

    /// Takes what a full batch gave back.
    pub(super) fn take_back(&mut self, item: Item) {
        match item {
            Item::Segment(segment) => self.segments.push(segment),
            Item::Job(job) => self.jobs.push(job),
        }
    }

    /// Packs plain submissions into segments. Submissions without a caller are left out.
    pub(super) fn packed(mut self, session: &Session, parts: &Parts) -> Self {
        self.jobs.retain(Submission::is_waited_for);
        let (segments, jobs) = pack(self.jobs);
        self.segments.extend(segments.into_iter().map(|jobs| Packed::of(session, parts, jobs)));
        Self { jobs, ..self }
    }

    /// What to send again. Segments that were not sent are taken apart.
    pub(super) fn again(self) -> Self {
        let (mut segments, mut jobs) = (Vec::new(), Vec::new());
        for segment in self.segments {
            match segment.unsent() {
                Ok(segment) => segments.push(segment),
                Err(members) => jobs.extend(members),
            }
        }
        jobs.extend(self.jobs);
        Self { segments, jobs }
    }
}

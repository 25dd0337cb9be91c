//! Numbers of jobs without reading any of them: a znode knows how many children it has, and the name of a segment how many jobs.

use std::collections::BTreeMap;

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::path::{self, SubBucket};
use bellwether_core::ready::{ClassName, Slot};
use bellwether_core::segment::MemberId;
use bellwether_zk::{Node, ReadResult, WrappingCount};
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::Client;
use super::cluster::{jobs_in, stat_all};
use super::error::Error;
use super::list::{minutes, ready_slots};
use super::runtime::Zk;
use super::segments::{job_or_segment, jobs_of};

/// Numbers of jobs by place. The numbers are read at slightly different moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Depths {
    /// Open and ended jobs. An estimate if there are segments, each of which has the records of up to a hundred jobs.
    pub stored: usize,
    /// Jobs that wait for a worker. An estimate if more than 5,000 jobs and segments wait and there are segments.
    pub queued: usize,
    /// Jobs that wait for their time.
    pub delayed: usize,
    /// Jobs that are quarantined.
    pub quarantined: usize,
}

impl Client {
    /// Counts jobs with about a dozen requests, however many jobs there are, and one more request for each hundred
    /// minutes that hold delayed jobs and classes of waiting jobs, and two for each hundred minutes in which the waiting jobs were
    /// submitted.
    ///
    /// # Errors
    /// Fails if ZooKeeper does not answer within the client's deadline.
    pub fn depths(&self) -> BoxFuture<'_, Result<Depths, Error>> {
        async move { self.0.session.read(self.by(), |zk| depths(zk.clone())).await }.boxed()
    }
}

/// The counts in more detail than [`Depths`].
#[derive(Debug)]
pub(super) struct Counts {
    pub(super) depths: Depths,
    /// Jobs that wait for a worker, by slot.
    pub(super) queued: Vec<(ClassName, Slot, usize)>,
    /// Records that were ever created, and how many of them were removed.
    pub(super) record_totals: RecordTotals,
    /// Minutes with delayed jobs that were not counted.
    pub(super) further_minutes: usize,
}

/// Created and removed records over the namespace's lifetime. Compare it with an earlier value.
///
/// A segment counts as one record, and each of its members that gets its own record as one more.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct RecordTotals {
    /// Records that were created.
    pub created: WrappingCount,
    /// Records that were removed, by retention or by hand.
    pub removed: WrappingCount,
    /// Jobs per record: 1 without segments, otherwise an estimate from the names of some of the stored records.
    pub jobs_per_record: f64,
}

impl Default for RecordTotals {
    fn default() -> Self {
        Self { created: WrappingCount::default(), removed: WrappingCount::default(), jobs_per_record: 1.0 }
    }
}

async fn depths(zk: Zk) -> ReadResult<Depths> {
    Ok(counts(zk, usize::MAX).await?.depths)
}

/// Counts the jobs. Delayed jobs are counted in the `most_minutes` earliest minutes only.
pub(super) async fn counts(zk: Zk, most_minutes: usize) -> ReadResult<Counts> {
    let records = async {
        let nodes = stat_all(&zk, SubBucket::all().map(SubBucket::path)).await?;
        let counts = SubBucket::all()
            .zip(&nodes)
            .map(|(parent, node)| (parent, node.as_ref().map_or(0, |node| node.children)));
        Ok((jobs_per_record(&zk, counts).await?, nodes))
    };
    let queued = async {
        let slots = ready_slots(zk.clone()).await?;
        let nodes = stat_all(&zk, slots.iter().map(|(class, slot)| path::ready_slot(class, *slot))).await?;
        let names = nodes.into_iter().map(|node| node.map_or(0, |node| node.children));
        let names = slots.into_iter().zip(names).map(|((class, slot), names)| (class, slot, names));
        jobs_of_slots(&zk, names.collect()).await
    };
    let quarantined = jobs_in(&zk, vec![path::QUARANTINE.to_owned()]);
    let delayed = async {
        let minutes = minutes(zk.clone()).await?;
        let further = minutes.len().saturating_sub(most_minutes);
        Ok((stat_all(&zk, minutes.into_iter().take(most_minutes)).await?, further))
    };
    let ((jobs_per_record, records), queued, quarantined, (delayed, further_minutes)) =
        futures::try_join!(records, queued, quarantined, delayed)?;
    let sum = |nodes: &[Option<Node>]| nodes.iter().flatten().map(|node| node.children).sum::<usize>();
    let created =
        records.iter().flatten().fold(WrappingCount::default(), |sum, node| sum.plus(node.children_ever));
    let depths = Depths {
        stored: (sum(&records) as f64 * jobs_per_record).round() as usize,
        queued: queued.iter().map(|(_, _, size)| size).sum(),
        delayed: sum(&delayed),
        quarantined: quarantined.into_iter().sum(),
    };
    let record_totals =
        RecordTotals { created, removed: created.less(WrappingCount::of(sum(&records))), jobs_per_record };
    Ok(Counts { depths, queued, record_totals, further_minutes })
}

/// Lists up to a hundred parents of records, evenly spread over those that have any, and counts jobs and records. Members of a segment
/// that have records of their own are counted with the segment.
async fn jobs_per_record(zk: &Zk, parents: impl Iterator<Item = (SubBucket, usize)>) -> ReadResult<f64> {
    let parents = parents.filter(|(_, records)| *records > 0).collect::<Vec<_>>();
    let step = parents.len().div_ceil(MAX_READ_BATCH).max(1);
    let paths = parents.iter().step_by(step).map(|(parent, _)| parent.path()).collect();
    let lists = zk.children_many(paths).await?;
    let names = lists.iter().flatten().flatten().filter_map(|name| job_or_segment(name));
    let (records, jobs) = names.fold((0, 0), |(records, jobs), id| {
        (records + 1, jobs + if MemberId::of_job(&id).is_some() { 0 } else { jobs_of(&id) })
    });
    Ok(if records > 0 && jobs > 0 { jobs as f64 / records as f64 } else { 1.0 })
}

/// Most names of waiting jobs and segments that are listed to count the jobs: one long list.
const COUNTED_NAMES: usize = 5_000;

/// Converts the number of names in each slot into the number of jobs, by the names of the smallest slots. In the other slots, the jobs
/// per name are as in the listed slots of the class, or of all classes.
async fn jobs_of_slots(
    zk: &Zk,
    mut slots: Vec<(ClassName, Slot, usize)>,
) -> ReadResult<Vec<(ClassName, Slot, usize)>> {
    slots.sort_by_key(|(_, _, names)| *names);
    let mut so_far = 0;
    let is_counted = |(_, _, names): &&(ClassName, Slot, usize)| {
        so_far += names;
        so_far <= COUNTED_NAMES.max(*names)
    };
    let counted = slots.iter().take_while(is_counted).count();
    let (listed, rest) = slots.split_at_mut(counted);
    let filled = listed.iter_mut().filter(|(_, _, names)| *names > 0).collect::<Vec<_>>();
    let paths = filled.iter().map(|(class, slot, _)| path::ready_slot(class, *slot)).collect();
    let jobs = jobs_in(zk, paths).await?;
    let (mut of_class, mut of_all) = (BTreeMap::<ClassName, (usize, usize)>::new(), (0, 0));
    for ((class, _, names), jobs) in filled.into_iter().zip(jobs) {
        for (all_names, all_jobs) in [of_class.entry(class.clone()).or_default(), &mut of_all] {
            (*all_names, *all_jobs) = (*all_names + *names, *all_jobs + jobs);
        }
        *names = jobs;
    }
    for (class, _, names) in rest {
        let (all_names, all_jobs) = of_class.get(class).copied().unwrap_or(of_all);
        if all_names > 0 {
            *names = (*names * all_jobs).div_ceil(all_names);
        }
    }
    Ok(slots)
}

#[cfg(test)]
mod tests;

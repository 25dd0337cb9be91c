//! Listing jobs in stateless pages.
//!
//! A [`Listing`](super::Listing) lives in its caller's memory. A page returns a cursor instead, so a stateless
//! caller, such as an HTTP request, can continue there with any client of the namespace. Parents are visited in
//! order, and names in order within them. So a job that stays in its place is returned exactly once over all pages.
//! In a listing by state, a job that moves between pages may be returned twice or not at all, because the
//! listing goes by place. So may a job of a segment that gets its own record between pages.
//!
//! A page looks at a bounded number of jobs, so that a filter that matches nothing does not read a million records in
//! one call. A page may therefore have fewer jobs than requested, or none, and still have a next page. It also ends
//! early when its jobs reach a number of bytes, so that a page of the largest payloads does not fill the memory.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use bellwether_core::budget::{MAX_NAME_BYTES, MAX_READ_BATCH};
use bellwether_core::name::JobId;
use bellwether_core::path::{self, SubBucket};
use bellwether_core::segment::{MemberId, SegmentId};
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::Client;
use super::error::Error;
use super::get::view;
use super::lanes::Turns;
use super::list::{Filter, PARENTS_AT_ONCE, job_of, minutes, next_list, ready_slots, running};
use super::locate::locate;
use super::segments::{EXPANDED_AT_ONCE, expand, order};
use super::sub_jobs::add_sub_jobs;
use super::view::{JobView, State};

/// Maximum number of jobs in one page.
pub const MAX_PAGE: usize = 1_000;

/// Maximum number of jobs that one page looks at, even if the filter accepts none: a full bucket, about 50 batched
/// reads.
pub(super) const MAX_LOOKED_AT: usize = 5_000;

/// Bytes of records that one read of a page asks for, as far as the sizes of the records before them predict it.
const READ_BYTES: usize = 1024 * 1024;

/// Bytes of the longest parent in a cursor: a class and a slot.
const MAX_PARENT: usize = MAX_NAME_BYTES + 32;

/// Records of the first read of a page, before their sizes are known: at most 3 MiB with payloads and results of 64 KiB.
const FIRST_READ: usize = 25;

/// Limits of one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct PageLimits {
    jobs: usize,
    bytes: usize,
    payloads: bool,
}

impl PageLimits {
    /// At most so many jobs (1 to [`MAX_PAGE`]), of any size, with their payloads and results.
    pub fn jobs(jobs: usize) -> Self {
        Self { jobs: jobs.clamp(1, MAX_PAGE), bytes: usize::MAX, payloads: true }
    }

    /// Ends the page before a job with which it would have more bytes, by [`JobView::bytes`]. The first job of a page may
    /// exceed the limit alone.
    pub fn bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// Whether the jobs have their payloads and results.
    pub fn payloads(mut self, payloads: bool) -> Self {
        self.payloads = payloads;
        self
    }
}

/// The number of records for the next read, from the bytes of the last one.
fn next_read(records: usize, bytes: usize) -> usize {
    let each = bytes.div_ceil(records.max(1)).max(1);
    (READ_BYTES / each).clamp(1, MAX_READ_BATCH)
}

/// A page of jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page {
    /// The jobs, in no particular order.
    pub jobs: Vec<JobView>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<Cursor>,
}

/// The end of a page: this name in this parent. Its text is opaque: pass it back unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    parent: String,
    after: JobId,
}

/// The text is not a cursor of a page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not the `next` of a page: pass it back unchanged, with the same filter")]
#[non_exhaustive]
pub struct CursorError;

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}~{}", self.parent, self.after)
    }
}

impl FromStr for Cursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, CursorError> {
        let (parent, after) = text.split_once('~').ok_or(CursorError)?;
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@+:".contains(&byte);
        if parent.len() > MAX_PARENT || !parent.bytes().all(is_name) {
            return Err(CursorError);
        }
        Ok(Self { parent: parent.to_owned(), after: JobId::new(after).map_err(|_| CursorError)? })
    }
}

/// A job or a segment in a parent.
struct Name {
    parent: Arc<str>,
    id: JobId,
}

impl Name {
    fn is_segment(&self) -> bool {
        SegmentId::of_job(&self.id).is_some()
    }
}

impl Client {
    /// Returns one page of the selected jobs, at most `limit` (1 to [`MAX_PAGE`]). It continues after an earlier page
    /// with the same filter.
    ///
    /// # Errors
    /// Fails if ZooKeeper does not answer within the client's deadline, which applies to each read.
    ///
    /// # Consistency
    /// Each job has the state in which its page finds it.
    pub fn list_page<'a>(
        &'a self,
        filter: &'a Filter,
        from: Option<&'a Cursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page, Error>> {
        self.list_page_within(filter, from, PageLimits::jobs(limit))
    }

    /// Returns one page of the selected jobs, like [`Client::list_page`], that also ends when it has so many bytes.
    ///
    /// # Errors
    /// Fails if ZooKeeper does not answer within the client's deadline, which applies to each read.
    ///
    /// # Consistency
    /// Each job has the state in which its page finds it.
    pub fn list_page_within<'a>(
        &'a self,
        filter: &'a Filter,
        from: Option<&'a Cursor>,
        limits: PageLimits,
    ) -> BoxFuture<'a, Result<Page, Error>> {
        async move {
            let PageLimits { jobs: limit, bytes: most_bytes, payloads } = limits;
            let (mut bytes, mut at_once) = (0_usize, FIRST_READ);
            let cluster = self.cluster(self.by()).await?;
            let (mut turns, mut jobs, mut looked_at) = (Turns::default(), Vec::new(), 0);
            let (mut parents, mut listed_at_once) = (self.parents(filter, from).await?, PARENTS_AT_ONCE);
            let (mut names, mut end) = (VecDeque::new(), from.cloned());
            loop {
                // A read takes the jobs of several parents if each has only a few.
                while names.len() < at_once.min(limit - jobs.len()) && !parents.is_empty() {
                    let few = parents.drain(..parents.len().min(listed_at_once)).collect::<Vec<_>>();
                    let listed = self.names(filter, &few, from).await?;
                    listed_at_once = next_list(few.len(), listed.len());
                    names.extend(listed);
                }
                let expanded = self.expand_next(filter, &mut names, from).await?;
                looked_at += expanded.as_ref().map_or(0, |(segments, _)| *segments);
                let few = names.iter().take(at_once).take_while(|name| !name.is_segment()).count();
                if few == 0 {
                    let next = match names.is_empty() && parents.is_empty() {
                        true => None,
                        // None of the segments had a member to look at.
                        false if looked_at >= MAX_LOOKED_AT => expanded.map(|(_, last)| last).or(end),
                        false => continue,
                    };
                    return Ok(Page { jobs, next });
                }
                let (places, ids): (Vec<_>, Vec<_>) =
                    names.drain(..few).map(|Name { parent, id }| (parent, id)).unzip();
                let found = locate(&self.0.session, self.by(), &ids).await?;
                let views = ids.iter().zip(found);
                let views = views.filter_map(|(id, found)| Some(view(id.clone(), found?, Some(&cluster))));
                let (mut kept, mut read_bytes) = (Vec::new(), 0);
                for mut view in views {
                    read_bytes += view.bytes();
                    if !payloads {
                        (view.payload, view.result) = (None, None);
                    }
                    if filter.lets(&view) {
                        kept.push(view);
                    }
                }
                at_once = next_read(few, read_bytes);
                let mut views = kept;
                let room = limit - jobs.len();
                let fits = views.iter().take(room).take_while(|view| {
                    let with = bytes.saturating_add(view.bytes());
                    let fits = with <= most_bytes || bytes == 0;
                    bytes = if fits { with } else { bytes };
                    fits
                });
                let fits = fits.count();
                let full = views.len() > fits;
                views.truncate(fits);
                turns.tell(&self.0.session, self.by(), &mut views).await?;
                add_sub_jobs(&self.0.session, self.by(), &mut views).await?;
                looked_at += few;
                // A full page ends after its last job of this read, or before this read; another one after the last job that was
                // looked at. The first job of a page always fits, so a page that ends before a read has read before.
                let last = match full {
                    true => views.last().and_then(|view| ids.iter().position(|id| *id == view.id)),
                    false => Some(few - 1),
                };
                if let Some(last) = last {
                    end = Some(Cursor { parent: places[last].as_ref().to_owned(), after: ids[last].clone() });
                }
                jobs.append(&mut views);
                if full || jobs.len() == limit || looked_at >= MAX_LOOKED_AT {
                    return Ok(Page { jobs, next: end });
                }
            }
        }
        .boxed()
    }

    /// Replaces segments at the front of the names by their members after the cursor, in the order of their ids. Returns the
    /// number of segments, and a cursor after the last one.
    async fn expand_next(
        &self,
        filter: &Filter,
        names: &mut VecDeque<Name>,
        from: Option<&Cursor>,
    ) -> Result<Option<(usize, Cursor)>, Error> {
        let mut segments = HashMap::new();
        let mut last = None;
        let mut few = Vec::new();
        while let Some(name) = names.front() {
            let member = MemberId::of_job(&name.id).map(|member| member.segment);
            match (SegmentId::of_job(&name.id), member) {
                (Some(segment), _) if segments.len() < EXPANDED_AT_ONCE => {
                    segments.insert(segment, (segments.len(), Arc::clone(&name.parent)));
                    let ids = segment.members().iter().map(|number| MemberId { segment, number }.job());
                    last = ids.max().map(|after| Cursor { parent: name.parent.as_ref().to_owned(), after });
                }
                // A member with a record in the same parent is next to its segment.
                (None, Some(segment)) if segments.contains_key(&segment) => {}
                (_, _) => break,
            }
            few.extend(names.pop_front().map(|name| name.id));
        }
        let Some(last) = last else { return Ok(None) };
        let session = &self.0.session;
        let members = session.read(self.by(), |zk| expand(zk.clone(), few.clone(), filter.state)).await?;
        let members = members.into_iter().filter_map(|id| {
            let (at, parent) = segments.get(&MemberId::of_job(&id)?.segment)?;
            let is_new = |from: &Cursor| *from.parent != **parent || id > from.after;
            from.is_none_or(is_new).then(|| (*at, id, Arc::clone(parent)))
        });
        let members = members.collect::<BTreeSet<_>>();
        members.into_iter().rev().for_each(|(_, id, parent)| names.push_front(Name { parent, id }));
        Ok(Some((segments.len(), last)))
    }

    /// Returns the remaining parents, by the last component of their paths.
    async fn parents(&self, filter: &Filter, from: Option<&Cursor>) -> Result<VecDeque<String>, Error> {
        let parents = || SubBucket::all().map(SubBucket::name).collect::<Vec<_>>();
        let all = match filter.state {
            Some(State::Running) => vec![INBOXES.to_owned()],
            Some(State::Delayed) => {
                let paths = self.0.session.read(self.by(), |zk| minutes(zk.clone())).await?;
                paths.iter().map(|path| last_component(path)).collect()
            }
            Some(State::Queued) => {
                let slots = self.0.session.read(self.by(), |zk| ready_slots(zk.clone())).await?;
                slots.iter().map(|(class, slot)| format!("{class}:{slot}")).collect()
            }
            Some(State::Succeeded | State::Cancelled | State::Dead | State::Quarantined) | None => parents(),
        };
        // Minutes are numbers of different lengths. Sub-buckets are three digits, whose order is that of their text.
        let order = |name: &str| (name.len(), name.to_owned());
        let first = from.map(|from| order(&from.parent));
        let left = all.into_iter().filter(|name| first.as_ref().is_none_or(|first| order(name) >= *first));
        let mut left = left.collect::<Vec<_>>();
        left.sort_by_cached_key(|name| order(name));
        Ok(left.into())
    }

    /// Returns the names in these parents, without those up to the cursor.
    async fn names(
        &self,
        filter: &Filter,
        parents: &[String],
        from: Option<&Cursor>,
    ) -> Result<Vec<Name>, Error> {
        let session = &self.0.session;
        let lists = if filter.state == Some(State::Running) {
            vec![session.read(self.by(), |zk| running(zk.clone())).await?]
        } else {
            let path = |name: &String| match filter.state {
                Some(State::Queued) => slot_path(name),
                Some(State::Delayed) => format!("{}/{name}", path::DELAYED),
                Some(
                    State::Running | State::Succeeded | State::Cancelled | State::Dead | State::Quarantined,
                )
                | None => {
                    SubBucket::from_name(name).map(SubBucket::path).expect("the names are of sub-buckets")
                }
            };
            let paths = parents.iter().map(path).collect::<Vec<_>>();
            let lists = session.read(self.by(), |zk| zk.children_many(paths.clone())).await?;
            let ids = |names: Vec<String>| {
                names.iter().filter_map(|name| job_of(filter.state, name)).collect::<Vec<_>>()
            };
            lists.into_iter().map(|names| ids(names.unwrap_or_default())).collect()
        };
        let names = parents.iter().zip(lists).flat_map(|(parent, mut ids)| {
            ids.sort_by_cached_key(order);
            if let Some(Cursor { after, .. }) = from.filter(|from| from.parent == *parent) {
                // The cursor may be inside a segment.
                ids.retain(|id| {
                    let order = order(id);
                    *order > *after.as_str()
                        || SegmentId::of_job(id).is_some() && after.as_str().starts_with(&order)
                });
            }
            let parent = Arc::<str>::from(parent.as_str());
            ids.into_iter().map(move |id| Name { parent: Arc::clone(&parent), id })
        });
        Ok(names.collect())
    }
}

/// Represents all inboxes, which are read together: they hold as many jobs as there are slots.
const INBOXES: &str = "inboxes";

/// The path of a slot from its class and its name.
fn slot_path(name: &str) -> String {
    let parsed =
        name.rsplit_once(':').and_then(|(class, slot)| Some((class.parse().ok()?, slot.parse().ok()?)));
    let (class, slot) = parsed.expect("the names were made of listed slots");
    path::ready_slot(&class, slot)
}

fn last_component(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;

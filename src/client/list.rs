//! Listing jobs, a page at a time.
//!
//! Parents are visited in order, and names in order within them. So a job that stays in its place is returned exactly
//! once over all pages, and a list of all states has each record once. In a list by state, a job that moves between pages
//! may be returned twice or not at all, because the list goes by place. So may a job of a
//! [segment](bellwether_core::segment) that gets its own record between pages.
//!
//! A page also ends early when its jobs reach a number of bytes, so that a page of the largest payloads does not fill the
//! memory.

mod cursor;
mod filter;
mod names;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use bellwether_core::segment::{MemberId, SegmentId};
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::Client;
use super::cluster::Cluster;
use super::error::Error;
use super::get::view;
use super::lanes::Turns;
use super::locate::locate;
use super::page::{FIRST_READ, MAX_LOOKED_AT, MAX_PAGE, Page, READ_BYTES, next_read};
use super::segments::{EXPANDED_AT_ONCE, expand};
use super::sub_jobs::add_sub_jobs;
use super::view::JobView;

pub use cursor::{Cursor, CursorError};
pub use filter::Filter;
use names::{Name, next_list};
pub(super) use names::{PARENTS_AT_ONCE, minutes, ready_slots};

/// Limits of one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct PageLimits {
    jobs: usize,
    bytes: usize,
    payloads: bool,
    /// The page ends after the read with which it has looked at so many jobs.
    looked_at: usize,
}

impl PageLimits {
    /// At most so many jobs (1 to [`MAX_PAGE`]), of any size, with their payloads and results.
    pub fn jobs(jobs: usize) -> Self {
        Self { jobs: jobs.clamp(1, MAX_PAGE), bytes: usize::MAX, payloads: true, looked_at: MAX_LOOKED_AT }
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

/// What a page reads for the next ones of the same list.
#[derive(Debug, Default)]
struct Known {
    cluster: Option<Cluster>,
    turns: Turns,
    /// The places after the end of the page. A parent leaves them once it is listed, and a name once it is read, so after an
    /// error the page can be read again.
    places: Option<Places>,
}

/// The places that are not read yet.
#[derive(Debug)]
struct Places {
    parents: VecDeque<String>,
    /// Number of parents for the next list.
    parents_at_once: usize,
    names: VecDeque<Name>,
    /// Number of records for the next read.
    records_at_once: usize,
}

/// A running listing; see [`Client::list`].
#[derive(Debug)]
pub struct Listing {
    client: Client,
    filter: Filter,
    known: Known,
    /// The end of the last page.
    from: Option<Cursor>,
    page: VecDeque<JobView>,
    is_complete: bool,
}

impl Listing {
    /// Returns the next job; `None` at the end. A job whose record cannot be read is returned as quarantined and does
    /// not stop the listing.
    ///
    /// # Errors
    /// Fails if ZooKeeper does not answer within the client's deadline, which applies to each read. The next call
    /// continues at the same job.
    ///
    /// # Cancellation
    /// Cancel safe: a dropped call skips no job.
    pub async fn next(&mut self) -> Result<Option<JobView>, Error> {
        while self.page.is_empty() && !self.is_complete {
            // A page is one read here: after an error or a dropped call, only that read is repeated.
            let limits = PageLimits { looked_at: 1, ..PageLimits::jobs(MAX_PAGE).bytes(READ_BYTES) };
            let page =
                self.client.job_page(&self.filter, self.from.as_ref(), limits, &mut self.known).await?;
            self.page = page.items.into();
            self.is_complete = page.next.is_none();
            self.from = page.next;
        }
        Ok(self.page.pop_front())
    }
}

impl Client {
    /// Lists jobs in no particular order. Nothing is read before the first [`Listing::next`]. Its memory is bounded by one read
    /// of jobs (at most 3 MiB), the names in a few places, and one job id per lane. Nodes, and the first job of a lane, are
    /// as they were when the listing first read them.
    #[must_use]
    pub fn list(&self, filter: Filter) -> Listing {
        Listing {
            client: self.clone(),
            filter,
            known: Known::default(),
            from: None,
            page: VecDeque::new(),
            is_complete: false,
        }
    }

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
    ) -> BoxFuture<'a, Result<Page<JobView, Cursor>, Error>> {
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
    ) -> BoxFuture<'a, Result<Page<JobView, Cursor>, Error>> {
        async move { self.job_page(filter, from, limits, &mut Known::default()).await }.boxed()
    }

    async fn job_page(
        &self,
        filter: &Filter,
        from: Option<&Cursor>,
        limits: PageLimits,
        known: &mut Known,
    ) -> Result<Page<JobView, Cursor>, Error> {
        let PageLimits { jobs: limit, bytes: most_bytes, payloads, looked_at: most_looked_at } = limits;
        let mut bytes = 0_usize;
        let Known { cluster, turns, places } = known;
        if cluster.is_none() {
            *cluster = Some(self.cluster(self.by()).await?);
        }
        let (mut jobs, mut looked_at) = (Vec::new(), 0);
        if places.is_none() {
            *places = Some(self.places(filter, from).await?);
        }
        let Places { parents, parents_at_once, names, records_at_once } =
            places.as_mut().expect("they were just read");
        let mut end = from.cloned();
        loop {
            // A read takes the jobs of several parents if each has only a few.
            while names.len() < (*records_at_once).min(limit - jobs.len()) && !parents.is_empty() {
                let few = parents.iter().take(*parents_at_once).cloned().collect::<Vec<_>>();
                let listed = self.names(filter, &few, from).await?;
                parents.drain(..few.len());
                *parents_at_once = next_list(few.len(), listed.len());
                names.extend(listed);
            }
            let expanded = self.expand_next(filter, names, from).await?;
            looked_at += expanded.as_ref().map_or(0, |(segments, _)| *segments);
            let few = names.iter().take(*records_at_once).take_while(|name| !name.is_segment()).count();
            if few == 0 {
                let next = match names.is_empty() && parents.is_empty() {
                    true => None,
                    // None of the segments had a member to look at.
                    false if looked_at >= most_looked_at => expanded.map(|(_, last)| last).or(end),
                    false => continue,
                };
                return Ok(Page { items: jobs, next });
            }
            let ids = names.iter().take(few).map(|name| name.id.clone()).collect::<Vec<_>>();
            let found = locate(&self.0.session, self.by(), &ids).await?;
            let views = ids.iter().zip(found);
            let views = views.filter_map(|(id, found)| Some(view(id.clone(), found?, cluster.as_ref())));
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
            *records_at_once = next_read(few, read_bytes);
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
            // Without an await in between: this read is not repeated.
            if let Some(last) = last {
                let Name { parent, id } = &names[last];
                end = Some(Cursor { parent: parent.as_ref().to_owned(), after: id.clone() });
                names.drain(..=last);
            }
            jobs.append(&mut views);
            if full || jobs.len() == limit || looked_at >= most_looked_at {
                return Ok(Page { items: jobs, next: end });
            }
        }
    }

    /// Returns the places after the cursor. No name is read yet.
    async fn places(&self, filter: &Filter, from: Option<&Cursor>) -> Result<Places, Error> {
        Ok(Places {
            parents: self.parents(filter, from).await?,
            parents_at_once: PARENTS_AT_ONCE,
            names: VecDeque::new(),
            records_at_once: FIRST_READ,
        })
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
        for name in &*names {
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
            few.push(name.id.clone());
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
        names.drain(..few.len());
        members.into_iter().rev().for_each(|(_, id, parent)| names.push_front(Name { parent, id }));
        Ok(Some((segments.len(), last)))
    }
}

#[cfg(test)]
mod page_tests;
#[cfg(test)]
mod tests;

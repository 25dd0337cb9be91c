//! Reading the members of a group one by one.
//!
//! Memory is bounded by the numbers of one chunk (4,096) and one page of records (100), however large the group is.

use std::collections::{BTreeMap, VecDeque};

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::group::{End, GroupError};
use bellwether_core::job::{JobRecord, JobState, Payload, Verdict};
use bellwether_core::name::{GroupId, JobId, Kind};
use bellwether_core::{path, wire};
use serde::de::DeserializeOwned;

use super::super::Client;
use super::super::error::Error;
use super::super::purge::Ended;
use super::decode;
use super::view::numbers;

/// A member of a group as read at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Member {
    /// Its number.
    pub number: u32,
    /// Its id.
    pub id: JobId,
    /// How it ended, or that it has not ended.
    pub end: MemberEnd,
}

/// How a member ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberEnd {
    /// It succeeded with this result.
    Succeeded(Payload),
    /// A client cancelled it.
    Cancelled,
    /// It is dead, with this last error: it reached the limit of failures or losses, or could never succeed.
    Dead(String),
    /// It has not ended. Only a group that was stopped continues without it.
    Open,
    /// Its record was removed or cannot be read. Contains the end in its mark, if there is one.
    Unreadable(Option<Ended>),
}

impl Member {
    /// Decodes its result from JSON; `None` if it has none, or one of another type.
    #[must_use]
    pub fn result<T: DeserializeOwned>(&self) -> Option<T> {
        match &self.end {
            MemberEnd::Succeeded(result) => serde_json::from_slice(result.bytes()).ok(),
            MemberEnd::Cancelled | MemberEnd::Dead(_) | MemberEnd::Open | MemberEnd::Unreadable(_) => None,
        }
    }

    /// Whether it succeeded.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        matches!(self.end, MemberEnd::Succeeded(_))
    }
}

/// A reader of a group's members; see [`Client::group_members`].
#[derive(Debug)]
pub struct Members {
    client: Client,
    group: GroupId,
    kind: Option<Kind>,
    chunks: VecDeque<u32>,
    numbers: VecDeque<(u32, Option<End>)>,
    page: VecDeque<Member>,
}

impl Client {
    /// Reads the members of a group in the order of their numbers, with their ends and results. Nothing is read
    /// before the first [`Members::next`].
    #[must_use]
    pub fn group_members(&self, group: &GroupId) -> Members {
        Members {
            client: self.clone(),
            group: group.clone(),
            kind: None,
            chunks: VecDeque::new(),
            numbers: VecDeque::new(),
            page: VecDeque::new(),
        }
    }
}

impl Members {
    /// Returns the group.
    #[must_use]
    pub fn group(&self) -> &GroupId {
        &self.group
    }

    /// Returns the next member; `None` at the end. Members that were never submitted are skipped.
    ///
    /// # Errors
    /// Fails if ZooKeeper does not answer within the client's deadline, which applies to each page, or the group was
    /// removed. The next call continues at the same member.
    ///
    /// # Cancellation
    /// Cancel safe: a dropped call skips no member.
    pub async fn next(&mut self) -> Result<Option<Member>, Error> {
        loop {
            if let Some(member) = self.page.pop_front() {
                return Ok(Some(member));
            }
            let Some(kind) = self.kind.clone() else {
                self.begin().await?;
                continue;
            };
            if !self.numbers.is_empty() {
                self.read_page(&kind).await?;
            } else if let Some(&chunk) = self.chunks.front() {
                let by = self.client.by();
                let group = &self.group;
                let session = &self.client.0.session;
                let listed = session.read(by, |zk| numbers(zk.clone(), group.clone(), chunk)).await?;
                let open = listed.open.into_iter().map(|number| (number, None));
                let mut all = open.collect::<BTreeMap<_, _>>();
                all.extend(listed.ended.into_iter().map(|(number, end)| (number, Some(end))));
                self.numbers.extend(all);
                self.chunks.pop_front();
            } else {
                return Ok(None);
            }
        }
    }

    async fn begin(&mut self) -> Result<(), Error> {
        let by = self.client.by();
        // The join was created after the last member's end, but this session's server may lag behind.
        self.client.catch_up(by).await?;
        let node = self.client.0.session.read(by, |zk| zk.get(path::group(&self.group))).await?;
        let node = node.ok_or_else(|| GroupError::Absent { group: self.group.clone() })?;
        let record = decode(&self.group, &node)?;
        self.chunks = self.client.group_chunks(&self.group, by).await?.into();
        self.kind = Some(record.kind);
        Ok(())
    }

    async fn read_page(&mut self, kind: &Kind) -> Result<(), Error> {
        let page = self.numbers.iter().take(MAX_READ_BATCH).copied().collect::<Vec<_>>();
        let ids = page.iter().map(|(number, _)| JobId::member(kind, &self.group, *number));
        let ids = ids.collect::<Result<Vec<_>, _>>().map_err(GroupError::from)?;
        let by = self.client.by();
        let nodes =
            self.client.0.session.read(by, |zk| zk.get_many(ids.iter().map(path::record).collect())).await?;
        // Last, and without an await in between: after an earlier error or a drop this page is read again.
        self.numbers.drain(..page.len());
        self.page.extend(page.into_iter().zip(ids).zip(nodes).map(|(((number, end), id), node)| {
            let record = node.and_then(|node| wire::decode::<JobRecord>(&node.data).ok());
            Member { number, id, end: record.map_or(MemberEnd::Unreadable(end.map(Ended::of)), ended) }
        }));
        Ok(())
    }
}

fn ended(record: JobRecord) -> MemberEnd {
    match record.state {
        JobState::Open { .. } => MemberEnd::Open,
        JobState::Terminal { verdict: Verdict::Succeeded(result), .. } => MemberEnd::Succeeded(result),
        JobState::Terminal { verdict: Verdict::Cancelled, .. } => MemberEnd::Cancelled,
        JobState::Terminal { verdict: Verdict::Dead, .. } => {
            MemberEnd::Dead(record.last_error.unwrap_or_default())
        }
    }
}

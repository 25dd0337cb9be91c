//! Reading the members of a group one by one.
//!
//! Memory is bounded by the numbers of one chunk (4,096) and one page of records (100), however large the group is.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::marker::PhantomData;

use bellwether_core::budget::{MAX_READ_BATCH, MEMBERS_PER_CHUNK};
use bellwether_core::chain::chain;
use bellwether_core::group::{End, GroupError};
use bellwether_core::job::{JobRecord, JobState, Payload, Verdict};
use bellwether_core::name::{GroupId, JobId, Kind};
use bellwether_core::remedy::ErrorClass;
use bellwether_core::{path, wire};

use super::super::Client;
use super::super::error::Error;
use super::super::job::{AnyKind, Untyped};
use super::super::purge::Ended;
use super::view::numbers;
use super::{check_kind, decode};
use crate::codec::{Part, is_encoded};

/// A member of a group as read at one moment. `R` is the type of its result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Member<R = Payload> {
    /// Its number.
    pub number: u32,
    /// Its id.
    pub id: JobId,
    /// How it ended, or that it has not ended.
    pub end: MemberEnd<R>,
    stored: Option<Payload>,
}

/// How a member ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberEnd<R = Payload> {
    /// It succeeded with this result.
    Succeeded(R),
    /// It succeeded, but its result is not of its kind's type, or the client's codec cannot decode it. Contains the error. See
    /// [`Member::stored`].
    Undecodable(String),
    /// A client cancelled it.
    Cancelled,
    /// It is dead, with this last error: it reached the limit of failures or losses, or could never succeed.
    Dead(String),
    /// It has not ended. Only a group that was stopped continues without it.
    Open,
    /// Its record was removed or cannot be read. Contains the end in its mark, if there is one.
    Unreadable(Option<Ended>),
}

/// A member has no result of its kind's type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("member {number} of the group has no result: job {id} {reason}")]
#[non_exhaustive]
pub struct MemberError {
    /// The member's number.
    pub number: u32,
    /// Its id.
    pub id: JobId,
    /// How it ended.
    pub reason: String,
    class: ErrorClass,
}

impl MemberError {
    /// Returns the class of the error: `Unreadable` if there may be a result that cannot be read or decoded, otherwise `Failed`.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        self.class
    }
}

bellwether_core::impl_remedy!(MemberError);

impl<R> Member<R> {
    /// Returns its result.
    ///
    /// # Errors
    /// [`MemberError`] if it did not succeed, or its result is not of its kind's type.
    pub fn into_result(self) -> Result<R, MemberError> {
        use ErrorClass::{Failed, Unreadable};
        let (reason, class) = match self.end {
            MemberEnd::Succeeded(result) => return Ok(result),
            MemberEnd::Undecodable(error) => (format!("has a result of another type: {error}"), Unreadable),
            MemberEnd::Cancelled => ("was cancelled".to_owned(), Failed),
            MemberEnd::Dead(error) => (format!("is dead: {error}"), Failed),
            MemberEnd::Open => ("has not ended".to_owned(), Failed),
            MemberEnd::Unreadable(_) => ("has no readable record".to_owned(), Unreadable),
        };
        Err(MemberError { number: self.number, id: self.id, reason, class })
    }

    /// Returns the bytes of its result, whatever their type; `None` if it did not succeed. They are decoded by the client's
    /// codec, or as stored if that is not possible.
    #[must_use]
    pub fn stored(&self) -> Option<&Payload> {
        self.stored.as_ref()
    }

    /// Whether it succeeded.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        matches!(self.end, MemberEnd::Succeeded(_) | MemberEnd::Undecodable(_))
    }
}

impl Member {
    fn new(number: u32, id: JobId, end: MemberEnd) -> Self {
        let stored = match &end {
            MemberEnd::Succeeded(result) => Some(result.clone()),
            MemberEnd::Undecodable(_)
            | MemberEnd::Cancelled
            | MemberEnd::Dead(_)
            | MemberEnd::Open
            | MemberEnd::Unreadable(_) => None,
        };
        Self { number, id, end, stored }
    }

    /// Decodes the result with the client's codec.
    ///
    /// # Errors
    /// A later attempt may succeed.
    async fn through_codec(self, client: &Client, kind: &Kind) -> Result<Self, Error> {
        let MemberEnd::Succeeded(stored) = &self.end else { return Ok(self) };
        match client.decode_part(Part::Result, &self.id, kind, stored).await {
            Ok(result) => Ok(Self::new(self.number, self.id, MemberEnd::Succeeded(result))),
            Err(error) if error.is_retryable() => Err(error),
            Err(error) => Ok(Self { end: MemberEnd::Undecodable(chain(&error)), ..self }),
        }
    }

    fn decoded<K: AnyKind>(self) -> Member<K::Output> {
        let Self { number, id, end, stored } = self;
        let end = match end {
            MemberEnd::Succeeded(result) if K::KIND.is_some() && is_encoded(&result) => {
                MemberEnd::Undecodable("it is encoded, and the client has no codec".to_owned())
            }
            MemberEnd::Succeeded(result) => match K::decode(&result) {
                Ok(result) => MemberEnd::Succeeded(result),
                Err(error) => MemberEnd::Undecodable(error.to_string()),
            },
            MemberEnd::Undecodable(error) => MemberEnd::Undecodable(error),
            MemberEnd::Cancelled => MemberEnd::Cancelled,
            MemberEnd::Dead(error) => MemberEnd::Dead(error),
            MemberEnd::Open => MemberEnd::Open,
            MemberEnd::Unreadable(end) => MemberEnd::Unreadable(end),
        };
        Member { number, id, end, stored }
    }
}

/// A reader of a group's members; see [`Client::group_members`]. `K` is the [`JobKind`](crate::JobKind) of the members,
/// or [`Untyped`].
pub struct Members<K = Untyped> {
    client: Client,
    group: GroupId,
    kind: Option<Kind>,
    from: u32,
    chunks: VecDeque<u32>,
    numbers: VecDeque<(u32, Option<End>)>,
    page: VecDeque<Member>,
    typed: PhantomData<fn() -> K>,
}

impl<K> fmt::Debug for Members<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Members").field(&self.group).finish()
    }
}

impl Client {
    /// Reads the members of a group in the order of their numbers, with their ends and results. Nothing is read
    /// before the first [`Members::next`]. `K` is the kind of the members, or [`Untyped`] for any kind.
    #[must_use]
    pub fn group_members<K: AnyKind>(&self, group: &GroupId) -> Members<K> {
        Members {
            client: self.clone(),
            group: group.clone(),
            kind: None,
            from: 0,
            chunks: VecDeque::new(),
            numbers: VecDeque::new(),
            page: VecDeque::new(),
            typed: PhantomData,
        }
    }
}

impl<K: AnyKind> Members<K> {
    /// Returns the group.
    #[must_use]
    pub fn group(&self) -> &GroupId {
        &self.group
    }

    /// Begins at this number instead of the first member. Has no effect after the first [`Members::next`].
    #[must_use]
    pub fn first(mut self, number: u32) -> Self {
        self.from = number;
        self
    }

    /// Returns the next member; `None` at the end. Members that were never submitted are skipped.
    ///
    /// # Errors
    /// Fails if ZooKeeper does not answer within the client's deadline, which applies to each page, the group was
    /// removed, its members have another kind, or the codec asks to decode a result later. The next call continues at the
    /// same member.
    ///
    /// # Cancellation
    /// Cancel safe: a dropped call skips no member.
    pub async fn next(&mut self) -> Result<Option<Member<K::Output>>, Error> {
        loop {
            let Some(kind) = self.kind.clone() else {
                self.begin().await?;
                continue;
            };
            if let Some(member) = self.page.front() {
                let member = member.clone().through_codec(&self.client, &kind).await?;
                // Last, so that a call that was dropped or failed skips no member.
                self.page.pop_front();
                return Ok(Some(member.decoded::<K>()));
            }
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
                self.numbers.extend(all.split_off(&self.from));
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
        let node = node.ok_or_else(|| GroupError::NotFound { group: self.group.clone() })?;
        let record = decode(&self.group, &node)?;
        check_kind::<K>(&self.group, &record)?;
        let first = self.from / MEMBERS_PER_CHUNK;
        let chunks = self.client.group_chunks(&self.group, by).await?.into_iter();
        self.chunks = chunks.filter(|chunk| *chunk >= first).collect();
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
            Member::new(number, id, record.map_or(MemberEnd::Unreadable(end.map(Ended::of)), ended))
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

#[cfg(test)]
mod tests;

//! Making, filling and sealing groups: as `src/client/group`.

use std::cell::RefCell;
use std::rc::Rc;

use bellwether_core::group::{End, GroupRecord, Stage};
use bellwether_core::job::{JobRecord, Membership, Role};
use bellwether_core::name::{GroupId, JobId};
use bellwether_core::path;
use bellwether_core::txn::{self, Op};
use bellwether_core::wire;
use uuid::Uuid;

use super::spawn::Parent;
use super::{Deadline, Shell, TooLate, Wish, Written};
use crate::plan::Seal;
use crate::zk::{Znode, ask};

/// How often a group that changes under our hands is tried.
const TRIES: u32 = 16;

/// How often a generation that did not come to its end is done again, and how long after.
const AGAIN: u32 = 3;
const AGAIN_US: u64 = 4_000_000;

/// Members that are submitted in one round.
const TOGETHER: usize = 3;

/// What a client submits as a group.
pub(crate) struct Generation {
    pub(crate) id: GroupId,
    pub(crate) record: GroupRecord,
    pub(crate) members: Vec<Wish>,
    pub(crate) seal: Seal,
    /// Between rounds.
    pub(crate) pace_ms: u64,
}

/// What is known of a group's record.
pub(crate) struct Known {
    pub(super) id: GroupId,
    record: RefCell<(GroupRecord, i32)>,
}

impl Known {
    /// What the group adds to the submission of this member, or why it takes none.
    pub(super) fn admits(&self, member: &JobRecord) -> Result<[Op; 2], String> {
        let (record, version) = &*self.record.borrow();
        let number = match member.membership {
            Some(Membership { role: Role::Member(number), .. }) => number,
            Some(Membership { role: Role::Join | Role::Finish, .. }) | None => {
                unreachable!("only members are submitted to a group")
            }
        };
        record.admits(&self.id, number).map_err(|why| why.to_string())?;
        Ok(txn::join_group(&self.id, *version, number))
    }

    /// Takes in what a read showed; `false` when the group is gone.
    pub(super) fn learn(&self, znode: Option<&Znode>) -> bool {
        let Some((record, version)) = znode.and_then(decoded) else { return false };
        let mut known = self.record.borrow_mut();
        if known.1 <= version || known.0.token != record.token {
            *known = (record, version);
        }
        true
    }

    fn look(&self) -> (GroupRecord, i32) {
        self.record.borrow().clone()
    }
}

impl Shell {
    /// Generates a group's members, again if something of it was not accepted: which changes nothing for those that
    /// were.
    pub(crate) async fn generate(self, generation: Generation) {
        for _ in 0..AGAIN {
            if let Ok(true) = self.generate_once(&generation).await {
                return;
            }
            self.sleep(AGAIN_US).await;
        }
    }

    async fn generate_once(&self, generation: &Generation) -> Result<bool, TooLate> {
        let Generation { id, record, members, seal, pace_ms } = generation;
        let record =
            GroupRecord { token: Uuid::from_u128(self.random()), created_at: self.wall(), ..record.clone() };
        let Some(group) = self.open_group(id, record, None).await? else { return Ok(false) };
        let total = u32::try_from(members.len()).expect("few members");
        let rounds = members.chunks(TOGETHER).count();
        for (at, round) in members.chunks(TOGETHER).enumerate() {
            if *seal == Seal::Last && at + 1 == rounds && !self.seal(&group, total).await? {
                return Ok(false);
            }
            if !self.submit_to(Some(&group), round.to_vec()).await {
                return Ok(false);
            }
            self.sleep(pace_ms * 1_000).await;
        }
        match seal {
            Seal::After => self.seal(&group, total).await,
            Seal::First | Seal::Last | Seal::Never => Ok(true),
        }
    }

    /// Makes a group, or finds it; `None` when it has other rules, or cannot be made.
    pub(super) async fn open_group(
        &self,
        id: &GroupId,
        record: GroupRecord,
        parent: Option<&Parent>,
    ) -> Result<Option<Rc<Known>>, TooLate> {
        let by = self.by();
        if record.check(id).is_err() {
            return Ok(None);
        }
        for _ in 0..TRIES {
            let Some(znode) = self.znode(by, path::group(id)).await? else {
                let ops = match parent {
                    None => txn::make_group(id, &record),
                    Some(parent) => match self.make_sub_group(by, id, &record, parent).await? {
                        Some(ops) => ops,
                        None => return Ok(None),
                    },
                };
                self.commit(by, &ops).await?;
                continue;
            };
            let Some((there, version)) = decoded(&znode) else { return Ok(None) };
            let rules = |group: &GroupRecord| (group.kind.clone(), group.fail_fast, group.join);
            if rules(&there) != rules(&record) {
                return Ok(None);
            }
            if let Some(parent) = parent
                && !self.make_sure_spawned(by, parent).await?
            {
                return Ok(None);
            }
            let known = Rc::new(Known { id: id.clone(), record: RefCell::new((there, version)) });
            if let Some(total) = record.total
                && !self.seal(&known, total).await?
            {
                return Ok(None);
            }
            return Ok(Some(known));
        }
        Ok(None)
    }

    /// Says a group's total; `false` when it cannot be that.
    async fn seal(&self, group: &Known, total: u32) -> Result<bool, TooLate> {
        let (id, by) = (&group.id, self.by());
        for _ in 0..TRIES {
            let (record, version) = group.look();
            let Ok(sealed) = record.sealed(id, total) else { return Ok(false) };
            if sealed == record {
                return Ok(true);
            }
            if self.highest(by, id).await?.is_some_and(|number| number >= total) {
                return Ok(false);
            }
            if self.commit(by, &txn::seal(id, version, &sealed)).await? == Written::Applied {
                let mut known = group.record.borrow_mut();
                if known.1 == version {
                    *known = (sealed, version + 1);
                }
                return Ok(true);
            }
            let znode = self.znode(by, path::group(id)).await?;
            if !group.learn(znode.as_ref()) {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// The highest number of a member that is there.
    async fn highest(&self, by: Deadline, id: &GroupId) -> Result<Option<u32>, TooLate> {
        let names = self.listed(by, path::group(id)).await?;
        let mut highest = None;
        for chunk in names.iter().filter_map(|name| path::parse_chunk(name)) {
            let open = self.listed(by, path::place_chunk(id, chunk)).await?;
            let ended = self.listed(by, path::mark_chunk(id, chunk)).await?;
            let open = open.iter().filter_map(|name| path::parse_place(name));
            let ended = ended.iter().filter_map(|name| path::parse_member_mark(name));
            highest = highest.max(open.chain(ended.map(|(number, _)| number)).max());
        }
        Ok(highest)
    }

    async fn listed(&self, by: Deadline, path: String) -> Result<Vec<String>, TooLate> {
        Ok(self.read(by, || ask::children(path.clone()), ask::listed).await?.unwrap_or_default())
    }

    pub(super) async fn group(
        &self,
        by: Deadline,
        id: &GroupId,
    ) -> Result<Option<(GroupRecord, i32)>, TooLate> {
        Ok(self.znode(by, path::group(id)).await?.as_ref().and_then(decoded))
    }

    /// What the retry of a job that is over must do for its group, and whether the group still counts it; `None` while
    /// its sub-jobs go on: as `src/client/group/retry.rs`.
    pub(super) async fn rejoin(
        &self,
        by: Deadline,
        id: &JobId,
        record: &mut JobRecord,
    ) -> Result<Option<Vec<Op>>, TooLate> {
        if record.spawned {
            let there = self.group(by, &GroupId::of_sub_jobs(id, record)).await?;
            if there.is_some_and(|(there, _)| !matches!(there.stage, Stage::Done { .. })) {
                return Ok(None);
            }
        }
        let end = End::of(&record.state);
        let (Some(part), Some(end)) = (record.membership.as_mut().filter(|part| part.counted), end) else {
            return Ok(Some(Vec::new()));
        };
        Ok(Some(match self.group(by, &part.group).await? {
            Some((group, version)) if waits(&group, part) => txn::rejoin_group(part, end, version, &group),
            Some(_) | None => {
                part.counted = false;
                Vec::new()
            }
        }))
    }
}

pub(super) fn decoded(znode: &Znode) -> Option<(GroupRecord, i32)> {
    Some((wire::decode(&znode.data).ok()?, znode.version))
}

/// Whether the group still waits for what this job is to it.
fn waits(group: &GroupRecord, part: &Membership) -> bool {
    match (group.stage, part.role) {
        (Stage::Open, Role::Member(_)) | (Stage::Joining, Role::Join) | (Stage::Finishing, Role::Finish) => {
            true
        }
        (Stage::Open | Stage::Joining | Stage::Finishing | Stage::Done { .. }, _) => false,
    }
}

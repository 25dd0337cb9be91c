//! A ZooKeeper for the model: znodes, sessions and time; no network.

use std::collections::BTreeMap;

use super::driver::TIMEOUT;
use crate::machine::election::campaign;
use crate::machine::election::leadership::{Findings, Reply, Request, Sighting};
use crate::name::NodeId;
use crate::outcome::{Outcome, Reason, Rejection};
use crate::path;
use crate::time::{Millis, WallMillis};
use crate::txn::{Lifetime, Op};

#[derive(Debug, Clone)]
pub(super) struct Znode {
    pub(super) version: i32,
    pub(super) owner: i64,
    data: Vec<u8>,
}

#[derive(Debug, Default)]
pub(super) struct Server {
    pub(super) znodes: BTreeMap<String, Znode>,
    sequence: u32,
    sessions: i64,
    /// When each live session was last heard of.
    alive: BTreeMap<i64, Millis>,
    /// Znodes that changed since the last look at this list.
    pub(super) changed: Vec<String>,
}

fn refused<T>(at: usize, reason: Reason) -> Outcome<T> {
    Outcome::Rejected(Rejection { at, reason })
}

impl Server {
    pub(super) fn new_session(&mut self, now: Millis) -> i64 {
        self.sessions += 1;
        self.alive.insert(self.sessions, now);
        self.sessions
    }

    pub(super) fn is_alive(&self, session: i64) -> bool {
        self.alive.contains_key(&session)
    }

    pub(super) fn heard(&mut self, session: i64, now: Millis) {
        if let Some(last) = self.alive.get_mut(&session) {
            *last = now;
        }
    }

    /// Ends sessions at the earliest moment that ZooKeeper may.
    pub(super) fn expire(&mut self, now: Millis) {
        let over: Vec<_> =
            self.alive.iter().filter(|(_, last)| now.since(**last) >= TIMEOUT).map(|(id, _)| *id).collect();
        over.into_iter().for_each(|session| self.end(session));
    }

    /// As when a second client with the same id and password closes it.
    pub(super) fn end(&mut self, session: i64) {
        self.alive.remove(&session);
        let theirs = self.znodes.iter().filter(|(_, znode)| znode.owner == session);
        let theirs: Vec<_> = theirs.map(|(path, _)| path.clone()).collect();
        theirs.into_iter().for_each(|path| self.delete(&path));
    }

    pub(super) fn delete(&mut self, path: &str) {
        self.znodes.remove(path);
        self.changed.push(path.to_owned());
    }

    pub(super) fn epoch(&self) -> Option<Sighting> {
        self.znodes.get(path::EPOCH).map(|znode| Sighting::new(znode.version, &znode.data).0)
    }

    pub(super) fn commit(&mut self, session: i64, ops: &[Op]) -> Outcome<()> {
        let before = self.znodes.clone();
        for (at, op) in ops.iter().enumerate() {
            if let Err(reason) = self.apply_op(session, op) {
                self.znodes = before;
                return refused(at, reason);
            }
        }
        self.changed.extend(ops.iter().map(|op| op.path().to_owned()));
        Outcome::Applied(())
    }

    fn apply_op(&mut self, session: i64, op: &Op) -> Result<(), Reason> {
        match op {
            Op::Check { path, version } => match self.znodes.get(path) {
                None => Err(Reason::NoNode),
                Some(znode) if !is_version(znode.version, *version) => Err(Reason::BadVersion),
                Some(_) => Ok(()),
            },
            Op::Create { path, data, lifetime } => {
                let owner = match lifetime {
                    Lifetime::Persistent => 0,
                    Lifetime::Ephemeral => session,
                };
                let data = data.clone();
                match self.znodes.insert(path.clone(), Znode { version: 0, owner, data }) {
                    None => Ok(()),
                    Some(_) => Err(Reason::NodeExists),
                }
            }
            Op::Set { path, data, version } => match self.znodes.get_mut(path) {
                None => Err(Reason::NoNode),
                Some(znode) if !is_version(znode.version, *version) => Err(Reason::BadVersion),
                Some(znode) => {
                    (znode.version, znode.data) = (znode.version + 1, data.clone());
                    Ok(())
                }
            },
            Op::Delete { path, .. } => self.znodes.remove(path).map(|_| ()).ok_or(Reason::NoNode),
        }
    }

    pub(super) fn apply(&mut self, session: i64, request: &Request) -> Reply {
        let owner = |server: &Self, path: &str| server.znodes.get(path).map(|znode| znode.owner);
        match request {
            Request::Campaign(request) => Reply::Campaign(self.apply_campaign(session, request)),
            Request::ReadEpoch => Reply::Epoch(Outcome::Applied(self.epoch())),
            Request::Claim(claim) => {
                let node = NodeId::new("model").unwrap();
                Reply::Claimed(self.commit(session, &claim.ops(&node, WallMillis(0))))
            }
            Request::Verify { candidate } => Reply::Verified(Outcome::Applied(Findings {
                owner: owner(self, candidate),
                epoch: self.epoch(),
            })),
        }
    }

    fn apply_campaign(&mut self, session: i64, request: &campaign::Request) -> campaign::Reply {
        let create = |path: &str, data: &[u8], lifetime| Op::Create {
            path: path.to_owned(),
            data: data.to_vec(),
            lifetime,
        };
        match request {
            campaign::Request::CreateParent { .. } => campaign::Reply::Created(Outcome::Applied(())),
            campaign::Request::CreateSequential { prefix, data } => {
                self.sequence += 1;
                let path = format!("{prefix}{:010}", self.sequence);
                let op = create(&path, data, Lifetime::Ephemeral);
                campaign::Reply::Created(self.commit(session, &[op]))
            }
            campaign::Request::CreateEphemeral { path, data } => {
                let op = create(path, data, Lifetime::Ephemeral);
                campaign::Reply::Created(self.commit(session, &[op]))
            }
            campaign::Request::List { .. } => {
                let names = self.znodes.keys().filter_map(|path| path.strip_prefix("/election/"));
                campaign::Reply::Listed(Outcome::Applied(names.map(str::to_owned).collect()))
            }
            campaign::Request::Owner { path } => {
                campaign::Reply::Owner(Outcome::Applied(self.znodes.get(*path).map(|znode| znode.owner)))
            }
            campaign::Request::Watch { path } => {
                campaign::Reply::Watched(Outcome::Applied(self.znodes.contains_key(path)))
            }
            campaign::Request::Delete { path } => {
                let op = Op::Delete { path: path.clone(), version: None };
                campaign::Reply::Deleted(self.commit(session, &[op]))
            }
        }
    }
}

/// What the client hears of a request whose reply it lost.
pub(super) fn unknown(request: &Request) -> Reply {
    match request {
        Request::ReadEpoch => Reply::Epoch(Outcome::Unknown),
        Request::Claim(_) => Reply::Claimed(Outcome::Unknown),
        Request::Verify { .. } => Reply::Verified(Outcome::Unknown),
        Request::Campaign(request) => Reply::Campaign(match request {
            campaign::Request::CreateParent { .. }
            | campaign::Request::CreateSequential { .. }
            | campaign::Request::CreateEphemeral { .. } => campaign::Reply::Created(Outcome::Unknown),
            campaign::Request::List { .. } => campaign::Reply::Listed(Outcome::Unknown),
            campaign::Request::Owner { .. } => campaign::Reply::Owner(Outcome::Unknown),
            campaign::Request::Watch { .. } => campaign::Reply::Watched(Outcome::Unknown),
            campaign::Request::Delete { .. } => campaign::Reply::Deleted(Outcome::Unknown),
        }),
    }
}

/// As ZooKeeper has it, -1 is any version.
fn is_version(is: i32, asked: i32) -> bool {
    asked == -1 || asked == is
}

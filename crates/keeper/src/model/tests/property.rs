//! Property tests with random requests.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;

use super::stage::{Stage, now};
use crate::model::{Config, ConnectionId, Effect, Input, Model};
use crate::proto::arbitrary::request;
use crate::proto::{ConnectRequest, OpResult, Request, Response};
use crate::store::{Change, Changes, Data, NodeRow, SessionRow, Snapshot};

const CLIENTS: usize = 3;

/// One event of a test case.
#[derive(Debug, Clone)]
enum Step {
    Ask(usize, Request),
    Drop(usize),
    Return(usize),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        30 => (0..CLIENTS, request()).prop_map(|(client, request)| Step::Ask(client, request)),
        1 => (0..CLIENTS).prop_map(Step::Drop),
        2 => (0..CLIENTS).prop_map(Step::Return),
        2 => (1..700_u64).prop_map(Step::Wait),
    ]
}

/// An in-memory store: the rows that were handed over, by creating transaction and path.
#[derive(Debug, Default, PartialEq, Clone)]
struct Rows {
    nodes: BTreeMap<(i64, String), (NodeRow, Data)>,
    sessions: BTreeMap<i64, SessionRow>,
    zxid: i64,
}

impl Rows {
    fn apply(&mut self, changes: Changes) {
        self.zxid = changes.zxid;
        for change in changes.rows {
            match change {
                Change::PutNode { path, row, data, data_changed } => {
                    let key = (row.czxid, path.as_ref().to_owned());
                    let known = self.nodes.insert(key, (row, data.clone()));
                    let unchanged = known.is_some_and(|(_row, known)| known == data);
                    assert!(data_changed || unchanged, "the change of the data of {path} is not marked");
                }
                Change::DeleteNode { czxid, path } => {
                    let known = self.nodes.remove(&(czxid, path.as_ref().to_owned()));
                    assert!(known.is_some(), "{path} was stored");
                }
                Change::PutSession(id, row) => {
                    self.sessions.insert(id, row);
                }
                Change::DeleteSession(id) => {
                    self.sessions.remove(&id);
                }
            }
        }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            zxid: self.zxid,
            nodes: self
                .nodes
                .iter()
                .map(|((_, path), (row, data))| (path.clone(), row.clone(), data.clone()))
                .collect(),
            sessions: self.sessions.iter().map(|(&id, row)| (id, row.clone())).collect(),
        }
    }
}

/// Clients that connect, send requests, disconnect and re-attach.
struct Crowd {
    stage: Stage,
    clients: Vec<(Option<ConnectionId>, ConnectRequest)>,
}

impl Crowd {
    fn new() -> Self {
        let config = Config { tick_ms: 100, cleaning_interval_ms: 300, ..Config::default() };
        let mut crowd = Self { stage: Stage::with(config), clients: Vec::new() };
        for _ in 0..CLIENTS {
            crowd.clients.push((None, super::stage::new_session()));
        }
        crowd
    }

    fn take(&mut self, step: Step) -> Vec<Effect> {
        match step {
            Step::Ask(client, request) => match self.clients[client].0 {
                Some(connection) => self.stage.input(connection, Input::Request { xid: 1, request }),
                None => self.come(client),
            },
            Step::Drop(client) => match self.clients[client].0.take() {
                Some(connection) => self.stage.input(connection, Input::Disconnected),
                None => Vec::new(),
            },
            Step::Return(client) => self.come(client),
            Step::Wait(ms) => self.stage.tick(self.stage.now_ms + ms),
        }
    }

    fn come(&mut self, client: usize) -> Vec<Effect> {
        let connection = self.stage.connection();
        let request = self.clients[client].1.clone();
        let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let password = [u8::try_from(client).expect("a small index"); 16];
        let effects = self.stage.input(connection, Input::Connect { request, peer, password });
        self.clients[client].0 = Some(connection);
        effects
    }

    /// Executes effects as a driver does.
    fn obey(&mut self, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::Connected(connection, response) => {
                    for (own, request) in &mut self.clients {
                        if *own == Some(*connection) {
                            (request.session_id, request.password) =
                                (response.session_id, response.password.clone());
                        }
                    }
                }
                Effect::Close(connection) => {
                    for (own, _request) in &mut self.clients {
                        if *own == Some(*connection) {
                            *own = None;
                        }
                    }
                }
                Effect::Reply(..) | Effect::Notify(..) => {}
            }
        }
    }
}

fn failed(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| match effect {
        Effect::Reply(_, reply) => match &reply.result {
            Ok(Response::Multi(results)) => results.iter().any(|result| matches!(result, OpResult::Error(_))),
            Ok(_) => false,
            Err(_) => true,
        },
        Effect::Connected(..) | Effect::Notify(..) | Effect::Close(_) => false,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// After every input the invariants hold (checked by the stage), a failed request changes only the zxid, the zxid
    /// never decreases, and the rows equal the model whenever they are handed over. The same inputs produce the same effects.
    #[test]
    fn the_model_and_its_rows_agree_after_any_requests(
        steps in prop::collection::vec((step(), any::<bool>()), 1..120)
    ) {
        let (mut crowd, mut twin, mut rows) = (Crowd::new(), Crowd::new(), Rows::default());
        for (step, is_batch_end) in steps {
            let before = crowd.stage.model.snapshot();
            let effects = crowd.take(step.clone());
            prop_assert_eq!(&effects, &twin.take(step.clone()), "the same inputs give the same effects");
            crowd.obey(&effects);
            twin.obey(&effects);
            let after = crowd.stage.model.snapshot();
            prop_assert!(after.zxid >= before.zxid);
            if failed(&effects) {
                prop_assert_eq!(&after.nodes, &before.nodes, "{:?}", step);
                prop_assert_eq!(&after.sessions, &before.sessions, "{:?}", step);
            }
            if is_batch_end {
                rows.apply(crowd.stage.model.take_changes());
                prop_assert_eq!(rows.snapshot(), after.clone());
            }
            let restored = Model::restore(crowd.stage.model.config.clone(), after.clone(), now(crowd.stage.now_ms));
            prop_assert_eq!(restored.map(|model| model.snapshot()), Ok(after));
        }
    }
}

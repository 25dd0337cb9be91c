use super::stage::{Stage, check, create, heard, new_session, now};
use crate::model::{Config, ConnectionId, Effect, Input, Model, RestoreError};
use crate::proto::{
    ConnectRequest, ConnectResponse, CreateMode, ErrorCode, EventKind, Intent, Reply, Request, Response,
};
use crate::store::{Change, Snapshot};

fn again(response: &ConnectResponse) -> ConnectRequest {
    ConnectRequest {
        session_id: response.session_id,
        password: response.password.clone(),
        timeout_ms: response.timeout_ms,
        ..new_session()
    }
}

fn over(connection: ConnectionId) -> Vec<Effect> {
    let response =
        ConnectResponse { timeout_ms: 0, session_id: 0, password: vec![0; 16], read_only: Some(false) };
    vec![Effect::Connected(connection, response), Effect::Close(connection)]
}

#[test]
fn timeouts_are_negotiated_within_the_bounds() {
    let bounded = Config {
        tick_ms: 100,
        min_session_timeout_ms: Some(5),
        max_session_timeout_ms: Some(7000),
        ..Config::default()
    };
    for (config, asked, granted) in [
        (Config { tick_ms: 100, ..Config::default() }, 1, 200),
        (Config { tick_ms: 100, ..Config::default() }, i32::MIN, 200),
        (Config { tick_ms: 100, ..Config::default() }, 777, 777),
        (Config { tick_ms: 100, ..Config::default() }, i32::MAX, 2000),
        (bounded.clone(), 1, 5),
        (bounded, 8000, 7000),
    ] {
        let mut stage = Stage::with(config);
        let (_, effects) = stage.hello(ConnectRequest { timeout_ms: asked, ..new_session() });
        assert!(matches!(&effects[..], [Effect::Connected(_, response)] if response.timeout_ms == granted));
    }
}

#[test]
fn a_session_expires_a_tick_after_its_timeout_with_its_ephemerals_and_their_events() {
    let mut stage = Stage::new();
    let (watcher, _) = stage.connect();
    let (mortal, hello) = stage.connect();
    for path in ["/b", "/a"] {
        stage.write(mortal, create(path, CreateMode::Ephemeral)).expect("created");
        assert_eq!(stage.stat(mortal, path).ephemeral_owner, hello.session_id);
        stage.ask(watcher, Request::Exists { path: path.to_owned(), watch: true }).expect("the znode exists");
    }
    stage.now_ms = 500;
    stage.ask(watcher, Request::Ping).expect("alive");
    assert_eq!(stage.model.next_tick(), Some(1100));
    assert_eq!(stage.tick(1099), []);
    let mut effects = stage.tick(1100);
    assert_eq!(effects.pop(), Some(Effect::Close(mortal)));
    let zxid = stage.model.zxid();
    let gone = |path: &str| (watcher, EventKind::NodeDeleted, path.to_owned(), zxid);
    assert_eq!(heard(effects), [gone("/a"), gone("/b")], "one transaction, in the order of the paths");
    assert!(!stage.exists(watcher, "/a"));
    assert_eq!(
        stage.hello(again(&hello)).1,
        over(ConnectionId(3)),
        "an expired session cannot be re-attached"
    );
}

#[test]
fn every_request_keeps_its_session_alive() {
    let mut stage = Stage::new();
    let (client, _) = stage.connect();
    for (at, input) in [
        (900, Input::Request { xid: -2, request: Request::Ping }),
        (1800, Input::Request { xid: 1, request: Request::Malformed(Intent::Read) }),
        (2700, Input::Request { xid: 2, request: Request::Exists { path: "/".to_owned(), watch: false } }),
    ] {
        stage.tick(at);
        stage.input(client, input);
    }
    stage.tick(3700);
    assert!(stage.model.session_of(client).is_some());
    assert_eq!(stage.tick(3800), [Effect::Close(client)]);
}

#[test]
fn closing_a_session_sends_its_events_then_the_reply_and_then_closes() {
    let mut stage = Stage::new();
    let (client, _) = stage.connect();
    stage.write(client, create("/e", CreateMode::Ephemeral)).expect("created");
    stage.ask(client, Request::GetData { path: "/e".to_owned(), watch: true }).expect("the znode exists");
    let mut effects = stage.input(client, Input::Request { xid: 9, request: Request::CloseSession });
    let zxid = stage.model.zxid();
    assert_eq!(effects.pop(), Some(Effect::Close(client)));
    assert_eq!(
        effects.pop(),
        Some(Effect::Reply(client, Reply { xid: 9, zxid, result: Ok(Response::Empty) }))
    );
    assert_eq!(heard(effects), [(client, EventKind::NodeDeleted, "/e".to_owned(), zxid)]);
    assert_eq!(stage.model.sessions().count(), 0);
    let late = Input::Request { xid: 10, request: Request::Ping };
    assert_eq!(stage.input(client, late), [], "a request after the close is ignored");
    assert_eq!(stage.input(client, Input::Disconnected), []);
}

#[test]
fn a_session_moves_with_its_password_and_loses_its_watches() {
    let mut stage = Stage::new();
    let (first, hello) = stage.connect();
    stage.write(first, create("/e", CreateMode::Ephemeral)).expect("created");
    stage.ask(first, Request::Exists { path: "/e".to_owned(), watch: true }).expect("the znode exists");

    let thief = ConnectRequest { password: vec![1; 16], ..again(&hello) };
    let (connection, effects) = stage.hello(thief);
    assert_eq!(effects, over(connection), "the first connection is kept");
    stage.ask(first, Request::Ping).expect("still served");

    stage.model.take_changes();
    let (second, effects) = stage.hello(ConnectRequest { timeout_ms: 1500, ..again(&hello) });
    let rows = stage.model.take_changes().rows;
    assert!(
        matches!(&rows[..], [Change::PutSession(_, row)] if row.timeout_ms == 1500),
        "the new timeout is stored"
    );
    let response = ConnectResponse { timeout_ms: 1500, ..hello.clone() };
    assert_eq!(effects, [Effect::Close(first), Effect::Connected(second, response)]);
    assert_eq!(stage.input(first, Input::Request { xid: 1, request: Request::Ping }), []);
    assert_eq!(stage.input(first, Input::Disconnected), [], "the session is on another connection");
    assert_eq!(stage.model.watched_paths(), 0);
    let (told, reply) = stage
        .request(second, Request::Write(crate::proto::Op::Delete { path: "/e".to_owned(), version: -1 }));
    assert_eq!((told, reply.result), (vec![], Ok(Response::Empty)));
    assert_eq!(stage.model.sessions().next().map(|view| view.timeout_ms), Some(1500));
}

#[test]
fn a_session_is_kept_after_a_disconnect_until_it_expires() {
    let mut stage = Stage::new();
    let (first, hello) = stage.connect();
    stage.input(first, Input::Disconnected);
    stage.now_ms = 1000;
    let (_, effects) = stage.hello(again(&hello));
    assert!(matches!(&effects[..], [Effect::Connected(_, response)] if response == &hello));
    assert_eq!(stage.tick(2000), []);
    assert_eq!(stage.tick(2100).len(), 1);
}

#[test]
fn a_client_with_a_newer_zxid_is_closed_without_a_reply() {
    let mut stage = Stage::new();
    let (connection, effects) = stage.hello(ConnectRequest { last_zxid_seen: 1, ..new_session() });
    assert_eq!(effects, [Effect::Close(connection)]);
    assert_eq!(stage.model.zxid(), 0);
}

#[test]
fn an_old_client_gets_the_old_connect_response() {
    let mut stage = Stage::new();
    let (_, effects) = stage.hello(ConnectRequest { read_only: None, ..new_session() });
    assert!(matches!(&effects[..], [Effect::Connected(_, response)] if response.read_only.is_none()));
}

#[test]
fn unknown_requests_are_rejected_and_close_the_connection() {
    let mut stage = Stage::new();
    let (client, _) = stage.connect();
    let request = |code| Input::Request { xid: 3, request: Request::Unsupported { code } };
    for (code, refusal) in [(16, ErrorCode::ReconfigDisabled), (20, ErrorCode::BadArguments)] {
        let zxid = stage.model.zxid() + 1;
        let reply = Reply { xid: 3, zxid, result: Err(refusal) };
        assert_eq!(stage.input(client, request(code)), [Effect::Reply(client, reply)]);
    }
    let unknown = Reply { xid: 3, zxid: -1, result: Err(ErrorCode::Unimplemented) };
    assert_eq!(stage.input(client, request(9999)), [Effect::Reply(client, unknown), Effect::Close(client)]);
    assert_eq!(stage.model.sessions().count(), 1);
}

#[test]
fn malformed_requests_are_rejected_by_their_kind() {
    use crate::model::Compat::{V3_8_0, V3_9};
    for (compat, intent, numbers) in [
        (V3_9, Intent::Read, 0),
        (V3_9, Intent::Write, 0),
        (V3_9, Intent::Multi, 1),
        (V3_8_0, Intent::Read, 0),
        (V3_8_0, Intent::Write, 1),
        (V3_8_0, Intent::Check, 1),
        (V3_8_0, Intent::Multi, 1),
    ] {
        let mut stage = Stage::with(Config { compat, ..Config::default() });
        let (client, _) = stage.connect();
        let before = stage.model.zxid();
        let (_, reply) = stage.request(client, Request::Malformed(intent));
        assert_eq!(
            (reply.zxid - before, reply.result),
            (numbers, Err(ErrorCode::MarshallingError)),
            "{intent:?}"
        );
    }
    let mut stage = Stage::new();
    let (client, _) = stage.connect();
    let auth = Input::Request { xid: -4, request: Request::Malformed(Intent::Auth) };
    assert_eq!(stage.input(client, auth), [Effect::Close(client)]);
}

#[test]
fn a_check_outside_a_multi_is_executed_by_3_8_and_unknown_to_3_9() {
    use crate::model::Compat::{V3_8_0, V3_9};
    for request in [Request::Write(check("/", -1)), Request::Malformed(Intent::Check)] {
        let mut stage = Stage::with(Config { compat: V3_9, ..Config::default() });
        let (client, _) = stage.connect();
        let effects = stage.input(client, Input::Request { xid: 1, request });
        let unknown = Reply { xid: 1, zxid: -1, result: Err(ErrorCode::Unimplemented) };
        assert_eq!(effects, [Effect::Reply(client, unknown), Effect::Close(client)]);
    }
    let mut stage = Stage::with(Config { compat: V3_8_0, ..Config::default() });
    let (client, _) = stage.connect();
    assert_eq!(stage.write(client, check("/", -1)), Ok(Response::Empty));
}

#[test]
fn a_session_survives_a_restart_with_its_full_timeout() {
    let mut stage = Stage::new();
    let (client, hello) = stage.connect();
    stage.write(client, create("/e", CreateMode::Ephemeral)).expect("created");
    let snapshot = stage.model.snapshot();
    stage.model = Model::restore(Config { tick_ms: 100, ..Config::default() }, snapshot, now(5000))
        .expect("a valid snapshot");
    stage.now_ms = 5000;
    assert_eq!(stage.model.next_tick(), Some(6100));
    let (client, effects) = stage.hello(again(&hello));
    assert!(matches!(&effects[..], [Effect::Connected(_, response)] if response == &hello));
    assert!(stage.exists(client, "/e"));
    let (_, other) = stage.connect();
    assert!(other.session_id > hello.session_id, "ids are not reused");
}

#[test]
fn sessions_have_rows_until_they_end() {
    let mut stage = Stage::new();
    let first = stage.model.take_changes();
    assert_eq!(first.rows.len(), 4, "the initial znodes are stored");
    let (client, hello) = stage.connect();
    let rows = stage.model.take_changes().rows;
    assert!(
        matches!(&rows[..], [Change::PutSession(id, row)] if *id == hello.session_id && row.timeout_ms == 1000)
    );
    stage.ask(client, Request::Ping).expect("alive");
    assert_eq!(stage.model.take_changes().rows, []);
    stage.input(client, Input::Request { xid: 1, request: Request::CloseSession });
    assert_eq!(stage.model.take_changes().rows, [Change::DeleteSession(hello.session_id)]);
}

#[test]
fn invalid_snapshots_are_not_restored() {
    let mut stage = Stage::new();
    let (client, _) = stage.connect();
    stage.create(client, "/a").expect("created");
    stage.write(client, create("/a/e", CreateMode::Ephemeral)).expect("created");
    let sound = stage.model.snapshot();
    let restore = |snapshot: Snapshot| Model::restore(Config::default(), snapshot, now(0)).map(|_| ());
    assert_eq!(restore(sound.clone()), Ok(()));

    let mut orphan = sound.clone();
    orphan.nodes.retain(|(path, ..)| path != "/a");
    assert_eq!(restore(orphan), Err(RestoreError::Orphan { path: "/a/e".to_owned() }));
    let mut rootless = sound.clone();
    rootless.nodes.retain(|(path, ..)| path != "/");
    assert_eq!(restore(rootless), Err(RestoreError::Orphan { path: "/zookeeper".to_owned() }));
    let mut doubled = sound.clone();
    let a = sound.nodes.iter().position(|(path, ..)| path == "/a").expect("created");
    doubled.nodes.push(doubled.nodes[a].clone());
    assert_eq!(restore(doubled), Err(RestoreError::Path { path: "/a".to_owned() }));
    let mut malformed = sound.clone();
    malformed.nodes[a].0 = "/a/".to_owned();
    assert_eq!(restore(malformed), Err(RestoreError::Path { path: "/a/".to_owned() }));
    let mut ownerless = sound;
    ownerless.sessions.clear();
    assert_eq!(restore(ownerless), Err(RestoreError::Ownerless { path: "/a/e".to_owned() }));
}

/// A prefix selects all paths if Java's `trim` leaves nothing of it, or a slash.
#[test]
fn a_prefix_of_control_characters_and_blanks_selects_all_ephemeral_znodes() {
    let mut stage = Stage::new();
    let (client, _) = stage.connect();
    stage.create(client, "/a").expect("created");
    stage.write(client, create("/a/e", CreateMode::Ephemeral)).expect("created");
    for (prefix, found) in [
        ("", true),
        ("/", true),
        (" /\t", true),
        ("\0", true),
        ("\u{1f}/", true),
        ("/a", true),
        ("/b", false),
        ("\0/a", false),
        ("\u{a0}", false),
        ("\u{2003}/", false),
    ] {
        let names = stage.ask(client, Request::GetEphemerals { prefix: prefix.into() });
        let expected = if found { vec!["/a/e".to_owned()] } else { vec![] };
        assert_eq!(names, Ok(Response::Names(expected)), "{prefix:?}");
    }
}

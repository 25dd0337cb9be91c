//! What clients may store and set, all together.

use super::stage::*;
use crate::model::{Bounds, Config, Effect, Input};
use crate::proto::{AddWatchMode, CreateMode, ErrorCode, OpResult, Request, Response};

fn bounded(bounds: Bounds) -> Stage {
    Stage::with(Config { tick_ms: TICK_MS, bounds, ..Config::default() })
}

fn watch(path: &str) -> Request {
    Request::Exists { path: path.to_owned(), watch: true }
}

#[test]
fn a_session_above_the_limit_is_disconnected_and_others_continue() {
    let mut stage = bounded(Bounds { sessions: 2, ..Bounds::default() });
    let (first, response) = stage.connect();
    stage.connect();
    let (refused, effects) = stage.hello(new_session());
    assert_eq!(effects, [Effect::Close(refused)]);
    stage.create(first, "/a").unwrap();
    // A session that exists moves to another connection.
    let mut again = new_session();
    (again.session_id, again.password) = (response.session_id, response.password);
    let (moved, _) = stage.hello(again);
    assert!(stage.exists(moved, "/a"));
    stage.input(moved, Input::Request { xid: 1, request: Request::CloseSession });
    stage.connect();
}

#[test]
fn a_watch_above_the_limit_is_refused_until_another_one_is_removed() {
    for bounds in [Bounds { watches: 2, ..Bounds::default() }, Bounds { watch_bytes: 4, ..Bounds::default() }]
    {
        let mut stage = bounded(bounds);
        let (a, _) = stage.connect();
        let (b, _) = stage.connect();
        for client in [a, b] {
            assert_eq!(stage.ask(client, watch("/a")), Err(ErrorCode::NoNode));
        }
        let add =
            |path: &str| Request::AddWatch { path: path.to_owned(), mode: AddWatchMode::PersistentRecursive };
        let read = |path: &str| Request::GetChildren { path: path.to_owned(), watch: true, stat: false };
        for request in [watch("/b"), add("/b"), read("/b")] {
            assert_eq!(stage.ask(a, request), Err(ErrorCode::Throttled));
        }
        assert_eq!(stage.ask(a, Request::Exists { path: "/b".into(), watch: false }), Err(ErrorCode::NoNode));
        // Both watches fire once.
        stage.create(a, "/a").unwrap();
        assert_eq!(stage.ask(a, watch("/b")), Err(ErrorCode::NoNode));
    }
}

#[test]
fn a_client_that_sets_too_many_watches_again_is_disconnected() {
    let mut stage = bounded(Bounds { watches: 3, ..Bounds::default() });
    let (client, _) = stage.connect();
    let again = Request::SetWatches {
        relative_zxid: 0,
        data: vec![],
        exist: vec!["/a".into(), "/b".into()],
        child: vec![],
        persistent: vec!["/c".into()],
        recursive: vec!["/d".into()],
    };
    let effects = stage.input(client, Input::Request { xid: -8, request: again });
    assert_eq!(effects, [Effect::Close(client)]);
}

#[test]
fn writes_beyond_the_bounds_fail_and_change_nothing() {
    let znodes = Stage::new().model.node_count() + 2;
    let mut stage = bounded(Bounds { znodes, ..Bounds::default() });
    let (client, _) = stage.connect();
    stage.create(client, "/a").unwrap();
    let ops = ["/b", "/c"].map(|path| create(path, CreateMode::Persistent)).to_vec();
    let results = stage.multi(client, ops);
    assert_eq!(results, [OpResult::Error(0), OpResult::Error(ErrorCode::QuotaExceeded.number())]);
    assert_eq!(stage.model.node_count() + 1, znodes);
    // A multi that makes room first fits.
    let ops = vec![delete("/a"), create("/b", CreateMode::Persistent), create("/c", CreateMode::Persistent)];
    assert!(stage.multi(client, ops).iter().all(|result| !matches!(result, OpResult::Error(_))));
    assert_eq!(stage.create(client, "/d"), Err(ErrorCode::QuotaExceeded));

    let data_bytes = Stage::new().model.data_bytes() + 10;
    let mut stage = bounded(Bounds { data_bytes, ..Bounds::default() });
    let (client, _) = stage.connect();
    stage.create(client, "/a").unwrap();
    let free = usize::try_from(data_bytes - stage.model.data_bytes()).unwrap();
    let length = usize::try_from(stage.stat(client, "/a").data_length).unwrap();
    let (fits, exceeds) = ("x".repeat(length + free), "x".repeat(length + free + 1));
    assert_eq!(stage.write(client, set("/a", &exceeds, -1)), Err(ErrorCode::QuotaExceeded));
    assert!(matches!(stage.write(client, set("/a", &fits, -1)), Ok(Response::Stat(_))));
    assert_eq!(stage.create(client, "/b"), Err(ErrorCode::QuotaExceeded));
    // What does not grow is always possible.
    stage.write(client, set("/a", &fits, -1)).unwrap();
    stage.write(client, set("/a", "", -1)).unwrap();
    stage.create(client, "/b").unwrap();
}

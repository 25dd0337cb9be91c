use super::stage::{Heard, Stage, create, create_with, delete, entry, set, world};
use crate::model::{Compat, Config, ConnectionId, Effect, Input};
use crate::proto::{AddWatchMode, CreateMode, ErrorCode, EventKind, Op, Request, Response, WatcherKind};

fn exists(path: &str) -> Request {
    Request::Exists { path: path.to_owned(), watch: true }
}

fn get(path: &str) -> Request {
    Request::GetData { path: path.to_owned(), watch: true }
}

fn list(path: &str) -> Request {
    Request::GetChildren { path: path.to_owned(), watch: true, stat: true }
}

fn add(path: &str, mode: AddWatchMode) -> Request {
    Request::AddWatch { path: path.to_owned(), mode }
}

type Fired = (EventKind, String);

/// Returns the kinds and paths of the notifications of one write.
fn fired(stage: &mut Stage, writer: ConnectionId, op: Op) -> Vec<Fired> {
    let (heard, reply) = stage.request(writer, Request::Write(op));
    assert!(reply.result.is_ok(), "{reply:?}");
    assert!(heard.iter().all(|(.., zxid)| *zxid == reply.zxid), "the zxid of the transaction: {heard:?}");
    heard.into_iter().map(|(_, kind, path, _)| (kind, path)).collect()
}

fn event(kind: EventKind, path: &str) -> Fired {
    (kind, path.to_owned())
}

#[test]
fn one_shot_watches_fire_as_in_zookeeper() {
    use EventKind::{NodeChildrenChanged, NodeCreated, NodeDataChanged, NodeDeleted};
    let persistent = CreateMode::Persistent;
    // The watch, the write, the notifications.
    let table: Vec<(Request, Op, Vec<Fired>)> = vec![
        (exists("/a"), set("/a", "", -1), vec![event(NodeDataChanged, "/a")]),
        (exists("/a/no"), create("/a/no", persistent), vec![event(NodeCreated, "/a/no")]),
        (exists("/a/b"), delete("/a/b"), vec![event(NodeDeleted, "/a/b")]),
        (exists("/a"), create("/a/c", persistent), vec![]),
        (get("/a"), set("/a", "", -1), vec![event(NodeDataChanged, "/a")]),
        (get("/a/b"), delete("/a/b"), vec![event(NodeDeleted, "/a/b")]),
        (get("/a"), delete("/a/b"), vec![]),
        (list("/a"), create("/a/c", persistent), vec![event(NodeChildrenChanged, "/a")]),
        (list("/a"), delete("/a/b"), vec![event(NodeChildrenChanged, "/a")]),
        (list("/a/b"), delete("/a/b"), vec![event(NodeDeleted, "/a/b")]),
        (list("/a"), set("/a", "", -1), vec![]),
        (list("/"), delete("/a/b"), vec![]),
        (list("/"), create("/c", persistent), vec![event(NodeChildrenChanged, "/")]),
        (get("/no"), create("/no", persistent), vec![]),
    ];
    for (watch, op, expected) in table {
        let mut stage = Stage::new();
        let (watcher, _) = stage.connect();
        let (writer, _) = stage.connect();
        stage.create(writer, "/a").expect("created");
        stage.create(writer, "/a/b").expect("created");
        stage.request(watcher, watch.clone());
        assert_eq!(fired(&mut stage, writer, op.clone()), expected, "{watch:?}, {op:?}");
        let spent = stage.model.watched_paths() == 0;
        assert_eq!(spent, !expected.is_empty() || watch == get("/no"), "{watch:?}, {op:?}");
    }
}

#[test]
fn a_deletion_notifies_once_and_then_the_watchers_of_the_parent() {
    let mut stage = Stage::new();
    let (client, _) = stage.connect();
    stage.create(client, "/a").expect("created");
    for watch in [get("/a"), list("/a"), exists("/a"), list("/")] {
        stage.request(client, watch);
    }
    let expected = [event(EventKind::NodeDeleted, "/a"), event(EventKind::NodeChildrenChanged, "/")];
    assert_eq!(fired(&mut stage, client, delete("/a")), expected);
}

#[test]
fn persistent_watches_are_kept() {
    use EventKind::{NodeChildrenChanged, NodeCreated, NodeDataChanged, NodeDeleted};
    let mut stage = Stage::new();
    let (client, _) = stage.connect();
    assert_eq!(stage.ask(client, add("/a", AddWatchMode::Persistent)), Ok(Response::WatchAdded));
    for (op, expected) in [
        (create("/a", CreateMode::Persistent), vec![event(NodeCreated, "/a")]),
        (create("/a/b", CreateMode::Persistent), vec![event(NodeChildrenChanged, "/a")]),
        (set("/a/b", "", -1), vec![]),
        (set("/a", "", -1), vec![event(NodeDataChanged, "/a")]),
        (delete("/a/b"), vec![event(NodeChildrenChanged, "/a")]),
        (delete("/a"), vec![event(NodeDeleted, "/a")]),
    ] {
        assert_eq!(fired(&mut stage, client, op.clone()), expected, "{op:?}");
    }
    assert_eq!(stage.model.watch_count(), 1);
}

#[test]
fn recursive_watches_fire_for_all_descendants() {
    use EventKind::{NodeCreated, NodeDataChanged, NodeDeleted};
    let mut stage = Stage::new();
    let (client, _) = stage.connect();
    stage.ask(client, add("/a", AddWatchMode::PersistentRecursive)).expect("added");
    stage.ask(client, add("/", AddWatchMode::PersistentRecursive)).expect("added");
    for (op, expected) in [
        (create("/a", CreateMode::Persistent), vec![event(NodeCreated, "/a")]),
        (create("/a/b", CreateMode::Persistent), vec![event(NodeCreated, "/a/b")]),
        (create("/a/b/c", CreateMode::Persistent), vec![event(NodeCreated, "/a/b/c")]),
        (set("/a/b/c", "", -1), vec![event(NodeDataChanged, "/a/b/c")]),
        (create("/ab", CreateMode::Persistent), vec![event(NodeCreated, "/ab")]),
        (delete("/a/b/c"), vec![event(NodeDeleted, "/a/b/c")]),
    ] {
        assert_eq!(
            fired(&mut stage, client, op.clone()),
            expected,
            "one notification for two watches: {op:?}"
        );
    }
}

#[test]
fn a_multi_notifies_in_the_order_of_its_operations() {
    let mut stage = Stage::new();
    let (client, _) = stage.connect();
    stage.ask(client, add("/", AddWatchMode::PersistentRecursive)).expect("added");
    let ops = vec![create("/a", CreateMode::Persistent), set("/a", "", -1), delete("/a")];
    let (heard, reply) = stage.request(client, Request::Multi(ops));
    let expected: Vec<Heard> = [EventKind::NodeCreated, EventKind::NodeDataChanged, EventKind::NodeDeleted]
        .map(|kind| (client, kind, "/a".to_owned(), reply.zxid))
        .to_vec();
    assert_eq!(heard, expected);
    let failing = vec![create("/b", CreateMode::Persistent), delete("/no")];
    assert_eq!(stage.request(client, Request::Multi(failing)).0, [], "a failed multi causes no notification");
}

#[test]
fn watches_are_found_and_removed_by_kind() {
    use WatcherKind::{Any, Children, Data, Persistent, PersistentRecursive};
    let path = || "/a".to_owned();
    let kinds = [Children, Data, Persistent, PersistentRecursive, Any];
    let watches = [
        list("/a"),
        get("/a"),
        add("/a", AddWatchMode::Persistent),
        add("/a", AddWatchMode::PersistentRecursive),
    ];
    for (index, watch) in watches.iter().enumerate() {
        for (column, &kind) in kinds.iter().enumerate() {
            let mut stage = Stage::new();
            let (client, _) = stage.connect();
            stage.create(client, "/a").expect("created");
            stage.ask(client, watch.clone()).expect("watched");
            let there = column == index || kind == Any;
            let expected = if there { Ok(Response::Empty) } else { Err(ErrorCode::NoWatcher) };
            assert_eq!(
                stage.ask(client, Request::CheckWatches { path: path(), kind }),
                expected,
                "{watch:?}"
            );
            assert_eq!(
                stage.ask(client, Request::RemoveWatches { path: path(), kind }),
                expected,
                "{watch:?}"
            );
            assert_eq!(stage.model.watch_count(), usize::from(!there), "{watch:?}, {kind:?}");
            let (stranger, _) = stage.connect();
            let foreign = stage.ask(stranger, Request::RemoveWatches { path: path(), kind: Any });
            assert_eq!(foreign, Err(ErrorCode::NoWatcher));
        }
    }
}

#[test]
fn release_3_8_finds_lasting_watches_as_one_shot_ones() {
    let mut stage = Stage::with(Config { compat: Compat::V3_8_0, ..Config::default() });
    let (client, _) = stage.connect();
    stage.ask(client, add("/a", AddWatchMode::Persistent)).expect("added");
    let mut check = |kind| stage.ask(client, Request::CheckWatches { path: "/a".to_owned(), kind });
    assert_eq!(check(WatcherKind::Children), Ok(Response::Empty));
    assert_eq!(check(WatcherKind::Data), Ok(Response::Empty));
    assert_eq!(check(WatcherKind::Persistent), Err(ErrorCode::MarshallingError));
}

#[test]
fn set_watches_notifies_of_missed_changes_and_sets_the_other_watches() {
    use EventKind::{NodeChildrenChanged, NodeCreated, NodeDataChanged, NodeDeleted};
    let mut stage = Stage::new();
    let (client, _) = stage.connect();
    for path in ["/same", "/changed", "/full"] {
        stage.create(client, path).expect("created");
    }
    let seen = stage.model.zxid();
    stage.write(client, set("/changed", "", -1)).expect("set");
    stage.create(client, "/full/child").expect("created");
    let strings = |paths: &[&str]| paths.iter().map(|&path| path.to_owned()).collect();
    let request = Request::SetWatches {
        relative_zxid: seen,
        data: strings(&["/same", "/changed", "/full", "/gone"]),
        exist: strings(&["/absent", "/same"]),
        child: strings(&["/same", "/full", "/gone"]),
        persistent: strings(&["/p"]),
        recursive: strings(&["/r"]),
    };
    let (heard, reply) = stage.request(client, request);
    assert_eq!(reply.result, Ok(Response::Empty));
    let missed = |kind, path: &str| (client, kind, path.to_owned(), -1);
    let expected = [
        missed(NodeDataChanged, "/changed"),
        missed(NodeDeleted, "/gone"),
        missed(NodeCreated, "/same"),
        missed(NodeChildrenChanged, "/full"),
        missed(NodeDeleted, "/gone"),
    ];
    assert_eq!(heard, expected);
    let views: Vec<_> = stage.model.watches().flat_map(|view| view.paths).collect();
    assert_eq!(views, ["/absent", "/full", "/p", "/r", "/same"]);
}

#[test]
fn watchers_without_read_permission_are_not_notified() {
    for compat in [Compat::V3_9, Compat::V3_8_0] {
        let mut stage = Stage::with(Config { compat, ..Config::default() });
        let (client, _) = stage.connect();
        stage.ask(client, add("/", AddWatchMode::PersistentRecursive)).expect("added");
        let secret = vec![world(2), entry(31, "digest", "a:b")];
        let unseen = create_with("/secret", CreateMode::Persistent, secret);
        let (heard, _) = stage.request(client, Request::Write(unseen));
        assert_eq!(heard, [], "{compat:?}");
        let (heard, _) = stage.request(client, Request::Write(create("/open", CreateMode::Persistent)));
        let [(.., zxid)] = heard.as_slice() else { panic!("not one notification: {heard:?}") };
        assert_eq!(*zxid == -1, compat == Compat::V3_8_0, "3.8 sends no zxid");
    }
}

#[test]
fn exists_needs_the_read_permission_since_3_9_and_sets_no_watch_without_it() {
    for compat in [Compat::V3_9, Compat::V3_8_0] {
        let mut stage = Stage::with(Config { compat, ..Config::default() });
        let (client, _) = stage.connect();
        let secret = create_with("/secret", CreateMode::Persistent, vec![world(30)]);
        stage.write(client, secret).expect("created");
        let refused = stage.ask(client, exists("/secret")) == Err(ErrorCode::NoAuth);
        assert_eq!(refused, compat == Compat::V3_9);
        assert_eq!(stage.model.watch_count(), usize::from(!refused), "{compat:?}");
    }
}

#[test]
fn a_watch_on_an_absent_znode_needs_no_permission_on_its_parent() {
    let mut stage = Stage::new();
    let (client, _) = stage.connect();
    stage.write(client, create_with("/secret", CreateMode::Persistent, vec![world(30)])).expect("created");
    assert_eq!(stage.ask(client, exists("/secret/open")), Err(ErrorCode::NoNode));
    let expected = [event(EventKind::NodeCreated, "/secret/open")];
    assert_eq!(fired(&mut stage, client, create("/secret/open", CreateMode::Persistent)), expected);
}

#[test]
fn check_watches_in_3_8_finds_the_watches_of_all_connections() {
    for compat in [Compat::V3_9, Compat::V3_8_0] {
        let mut stage = Stage::with(Config { compat, ..Config::default() });
        let (watcher, _) = stage.connect();
        let (stranger, _) = stage.connect();
        assert_eq!(stage.ask(watcher, exists("/a")), Err(ErrorCode::NoNode));
        let path = || "/a".to_owned();
        for (kind, found) in
            [(WatcherKind::Data, true), (WatcherKind::Any, true), (WatcherKind::Children, false)]
        {
            let check = || Request::CheckWatches { path: path(), kind };
            let expected = |found| if found { Ok(Response::Empty) } else { Err(ErrorCode::NoWatcher) };
            assert_eq!(stage.ask(watcher, check()), expected(found), "{compat:?}, {kind:?}");
            let foreign = found && compat == Compat::V3_8_0;
            assert_eq!(stage.ask(stranger, check()), expected(foreign), "{compat:?}, {kind:?}");
        }
        let remove = Request::RemoveWatches { path: path(), kind: WatcherKind::Any };
        assert_eq!(stage.ask(stranger, remove), Err(ErrorCode::NoWatcher), "{compat:?}");
    }
}

#[test]
fn watches_are_deleted_with_their_connection() {
    let mut stage = Stage::new();
    let (client, _) = stage.connect();
    let (writer, _) = stage.connect();
    stage.ask(client, add("/", AddWatchMode::PersistentRecursive)).expect("added");
    stage.ask(client, list("/")).expect("listed");
    stage.input(client, Input::Disconnected);
    assert_eq!(fired(&mut stage, writer, create("/a", CreateMode::Persistent)), []);
    assert_eq!(stage.model.watch_count(), 0);
}

#[test]
fn a_change_with_many_watchers_is_one_effect() {
    let mut stage = Stage::new();
    let (writer, _) = stage.connect();
    stage.create(writer, "/a").expect("created");
    let mut watchers = Vec::new();
    for _ in 0..20 {
        let (watcher, _) = stage.connect();
        let request = Request::AddWatch { path: "/a".to_owned(), mode: AddWatchMode::Persistent };
        assert_eq!(stage.ask(watcher, request), Ok(Response::WatchAdded));
        watchers.push(watcher);
    }
    let request = Request::Multi(vec![set("/a", "y", -1); 30]);
    let effects = stage.input(writer, Input::Request { xid: 1, request });
    assert_eq!(effects.len(), 30 + 1, "30 notifications and the reply");
    assert!(matches!(&effects[0], Effect::Notify(hearers, _) if hearers == &watchers));
}

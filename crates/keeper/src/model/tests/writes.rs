use std::sync::Arc;

use super::stage::{Stage, TICK_MS, WALL_MS, create, create_with, data, delete, set, world};
use crate::model::Config;
use crate::proto::{CreateMode, ErrorCode, Op, Request, Response, Stat};
use crate::store::Change;

fn path(result: Result<Response, ErrorCode>) -> String {
    match result {
        Ok(Response::Path(path)) => path,
        other => panic!("not created: {other:?}"),
    }
}

#[test]
fn a_new_server_has_the_znodes_of_zookeeper() {
    let mut stage = Stage::new();
    let (client, _) = stage.connect();
    let fresh =
        |cversion, aversion, num_children| Stat { cversion, aversion, num_children, ..Stat::default() };
    assert_eq!(stage.stat(client, "/"), fresh(-1, 0, 1));
    assert_eq!(stage.stat(client, "/zookeeper"), fresh(-2, 0, 2));
    assert_eq!(stage.stat(client, "/zookeeper/quota"), fresh(0, 0, 0));
    assert_eq!(stage.stat(client, "/zookeeper/config"), fresh(0, -1, 0));
    assert_eq!(stage.stat(client, ""), fresh(-1, 0, 1), "the root's other name");
    assert_eq!(stage.write(client, set("/zookeeper/config", "", -1)), Err(ErrorCode::NoAuth));
}

#[test]
fn a_stat_counts_all_changes() {
    let mut stage = Stage::new();
    let (client, _) = stage.connect();
    stage.now_ms = 5;
    assert_eq!(path(stage.create(client, "/a")), "/a");
    stage.now_ms = 9;
    stage.write(client, set("/a", "four", 0)).expect("set");
    stage.create(client, "/a/b").expect("created");
    stage.create(client, "/a/c").expect("created");
    stage.write(client, delete("/a/b")).expect("deleted");
    let stat = stage.stat(client, "/a");
    let expected = Stat {
        czxid: 2,
        mzxid: 3,
        ctime: WALL_MS + 5,
        mtime: WALL_MS + 9,
        version: 1,
        cversion: 3,
        aversion: 0,
        ephemeral_owner: 0,
        data_length: 4,
        num_children: 1,
        pzxid: 6,
    };
    assert_eq!(stat, expected);
}

#[test]
fn errors_have_the_precedence_of_zookeeper() {
    let mut stage = Stage::new();
    let (client, _) = stage.connect();
    stage.create(client, "/a").expect("created");
    stage.write(client, create("/e", CreateMode::Ephemeral)).expect("created");
    stage.create(client, "/a/b").expect("created");
    let persistent = CreateMode::Persistent;
    for (op, code) in [
        (create("/", persistent), ErrorCode::NodeExists),
        (create("", persistent), ErrorCode::BadArguments),
        (create("a", persistent), ErrorCode::BadArguments),
        (create("/\0", persistent), ErrorCode::BadArguments),
        (create("/no/", persistent), ErrorCode::NoNode),
        (create("/a/", persistent), ErrorCode::BadArguments),
        (create("/no/..", persistent), ErrorCode::NoNode),
        (create("/a", persistent), ErrorCode::NodeExists),
        (create("/e/x", persistent), ErrorCode::NoChildrenForEphemerals),
        (create("/e/x", CreateMode::PersistentSequential), ErrorCode::NoChildrenForEphemerals),
        (create_with("/no/x", persistent, vec![]), ErrorCode::InvalidAcl),
        (create("/t", CreateMode::Ttl(0)), ErrorCode::BadArguments),
        (Op::Unknown { code: 1 }, ErrorCode::BadArguments),
        (delete(""), ErrorCode::BadArguments),
        (delete("/"), ErrorCode::BadArguments),
        (delete("/zookeeper"), ErrorCode::BadArguments),
        (delete("/zookeeper/quota"), ErrorCode::BadArguments),
        (delete("/zookeeper/config"), ErrorCode::BadArguments),
        (delete("/a/"), ErrorCode::NoNode),
        (delete("/no"), ErrorCode::NoNode),
        (delete("/a"), ErrorCode::NotEmpty),
        (Op::Delete { path: "/a".to_owned(), version: 7 }, ErrorCode::BadVersion),
        (set("", "", -1), ErrorCode::BadArguments),
        (set("/no", "", -1), ErrorCode::NoNode),
        (set("/a", "", 1), ErrorCode::BadVersion),
    ] {
        let before = (stage.model.zxid(), stage.model.snapshot().nodes);
        assert_eq!(stage.write(client, op.clone()), Err(code), "{op:?}");
        assert_eq!(stage.model.zxid(), before.0 + 1, "a failed write consumes a zxid: {op:?}");
        assert_eq!(stage.model.snapshot().nodes, before.1, "{op:?}");
    }
}

#[test]
fn sequence_numbers_count_creations_and_are_never_reused() {
    let mut stage = Stage::new();
    let (client, _) = stage.connect();
    stage.create(client, "/q").expect("created");
    let sequential =
        |stage: &mut Stage| path(stage.write(client, create("/q/n-", CreateMode::PersistentSequential)));
    assert_eq!(sequential(&mut stage), "/q/n-0000000000");
    stage.write(client, delete("/q/n-0000000000")).expect("deleted");
    stage.create(client, "/q/other").expect("created");
    assert_eq!(sequential(&mut stage), "/q/n-0000000002");
    assert_eq!(path(stage.write(client, create("/q/", CreateMode::EphemeralSequential))), "/q/0000000003");
}

#[test]
fn sequence_numbers_overflow_into_negative_ones() {
    let mut stage = Stage::new();
    let (client, _) = stage.connect();
    stage.model.tree.get_mut("/").expect("the root").creates = i32::MAX;
    let sequential =
        |stage: &mut Stage| path(stage.write(client, create("/n", CreateMode::PersistentSequential)));
    assert_eq!(sequential(&mut stage), "/n2147483647");
    assert_eq!(sequential(&mut stage), "/n-2147483648");
    stage.model.tree.get_mut("/").expect("the root").creates = -5;
    assert_eq!(sequential(&mut stage), "/n-000000005");
}

#[test]
fn a_version_is_never_minus_one() {
    let mut stage = Stage::new();
    let (client, _) = stage.connect();
    stage.create(client, "/a").expect("created");
    stage.model.tree.get_mut("/a").expect("created").version = -2;
    stage.write(client, set("/a", "", -2)).expect("set");
    assert_eq!(stage.stat(client, "/a").version, 0);
}

#[test]
fn null_data_is_not_empty_data() {
    let mut stage = Stage::new();
    let (client, _) = stage.connect();
    let acl = vec![world(31)];
    let null =
        Op::Create { path: "/n".to_owned(), data: None, acl, mode: CreateMode::Persistent, stat: false };
    stage.write(client, null).expect("created");
    let get = |stage: &mut Stage| stage.ask(client, Request::GetData { path: "/n".to_owned(), watch: false });
    assert!(matches!(get(&mut stage), Ok(Response::Data(None, _))));
    stage.write(client, set("/n", "", -1)).expect("set");
    assert!(matches!(get(&mut stage), Ok(Response::Data(Some(empty), _)) if empty.is_empty()));
    let untold: Arc<[u8]> = Arc::from([]);
    assert_eq!(data(""), Some(untold));
}

#[test]
fn ttl_znodes_need_the_extended_types() {
    let mut stage = Stage::with(Config { extended_types: false, ..Config::default() });
    let (client, _) = stage.connect();
    let ttl = stage.write(client, create("/t", CreateMode::Ttl(5)));
    assert_eq!(ttl, Err(ErrorCode::Unimplemented));
}

#[test]
fn empty_containers_and_expired_ttl_znodes_are_removed() {
    let config = Config { tick_ms: TICK_MS, cleaning_interval_ms: 1000, ..Config::default() };
    let mut stage = Stage::with(config);
    let (client, _) = stage.connect();
    assert_eq!(stage.model.next_tick(), Some(1100), "the expiry of the session");
    for (path, mode) in [
        ("/used", CreateMode::Container),
        ("/fresh", CreateMode::Container),
        ("/full", CreateMode::Container),
        ("/old", CreateMode::Ttl(500)),
        ("/young", CreateMode::Ttl(1000)),
        ("/parent", CreateMode::Ttl(500)),
    ] {
        stage.write(client, create(path, mode)).expect("created");
        assert_eq!(stage.stat(client, path).ephemeral_owner, 0, "{path}");
    }
    for path in ["/used/a", "/full/a", "/parent/a"] {
        stage.create(client, path).expect("created");
    }
    stage.write(client, delete("/used/a")).expect("deleted");
    assert_eq!(stage.model.next_tick(), Some(1000), "the next cleaning");

    let before = stage.model.zxid();
    assert_eq!(stage.tick(999), [], "nothing is due");
    assert_eq!(stage.tick(1000), []);
    assert_eq!(stage.children(client, "/"), ["fresh", "full", "parent", "young", "zookeeper"]);
    assert_eq!(stage.model.zxid(), before + 2, "one transaction per znode");
    stage.write(client, delete("/parent/a")).expect("deleted");
    stage.tick(2001);
    assert_eq!(
        stage.model.node_count(),
        7,
        "the session and /young and /parent were removed; containers in use were kept"
    );
}

#[test]
fn all_descendants_are_counted() {
    let mut stage = Stage::new();
    let (client, _) = stage.connect();
    for path in ["/a", "/a/b", "/a/b/c", "/a/d", "/ab"] {
        stage.create(client, path).expect("created");
    }
    let count = |stage: &mut Stage, path: &str| {
        stage.ask(client, Request::CountDescendants { path: path.to_owned() })
    };
    assert_eq!(count(&mut stage, "/a"), Ok(Response::Count(3)));
    assert_eq!(count(&mut stage, "/"), Ok(Response::Count(8)));
    assert_eq!(count(&mut stage, ""), Ok(Response::Count(9)));
    assert_eq!(count(&mut stage, "/no"), Err(ErrorCode::NoNode));
}

/// The rows of a store are keyed by the transaction that created the znode.
#[test]
fn a_row_ends_with_its_znode_although_another_one_has_the_same_path() {
    let mut stage = Stage::new();
    let (client, _) = stage.connect();
    for path in ["/again", "/gone"] {
        stage.create(client, path).expect("created");
    }
    let [again, gone] = ["/again", "/gone"].map(|path| stage.stat(client, path).czxid);
    drop(stage.model.take_changes());
    stage.multi(client, vec![delete("/again"), create("/again", CreateMode::Persistent)]);
    stage.create(client, "/brief").expect("created");
    for path in ["/brief", "/gone"] {
        stage.write(client, delete(path)).expect("deleted");
    }
    let (mut kept, mut ended) = (Vec::new(), Vec::new());
    for change in stage.model.take_changes().rows {
        match change {
            Change::PutNode { path, row, .. } => kept.push((row.czxid, path.to_string())),
            Change::DeleteNode { czxid, path } => ended.push((czxid, path.to_string())),
            Change::PutSession(..) | Change::DeleteSession(_) => panic!("no session changed"),
        }
    }
    kept.sort();
    assert_eq!(kept, [(0, "/".to_owned()), (gone + 1, "/again".to_owned())]);
    assert_eq!(ended, [(again, "/again".to_owned()), (gone, "/gone".to_owned())]);
}

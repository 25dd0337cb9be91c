use super::stage::{Stage, check, create, delete, set};
use crate::model::{Compat, Config};
use crate::proto::{CreateMode, ErrorCode, Op, OpResult, Request, Response};

fn with_stat(path: &str) -> Op {
    match create(path, CreateMode::Persistent) {
        Op::Create { path, data, acl, mode, stat: _ } => Op::Create { path, data, acl, mode, stat: true },
        other => other,
    }
}

#[test]
fn operations_see_earlier_ones_and_share_one_transaction() {
    let mut stage = Stage::new();
    let (client, _) = stage.connect();
    let before = stage.model.zxid();
    let results = stage.multi(
        client,
        vec![
            create("/a", CreateMode::Persistent),
            create("/a/n", CreateMode::PersistentSequential),
            create("/a/n", CreateMode::PersistentSequential),
            set("/a", "new", 0),
            check("/a", 1),
            delete("/a/n0000000000"),
        ],
    );
    let stat = stage.stat(client, "/a");
    assert_eq!((stat.czxid, stat.mzxid, stat.pzxid), (before + 1, before + 1, before + 1));
    assert_eq!((stage.model.zxid(), stat.cversion), (before + 1, 3));
    let mut when_set = stat;
    (when_set.cversion, when_set.num_children) = (2, 2);
    let created = |path: &str| OpResult::Create { path: path.to_owned() };
    let expected = [
        created("/a"),
        created("/a/n0000000000"),
        created("/a/n0000000001"),
        OpResult::SetData(when_set),
        OpResult::Check,
        OpResult::Delete,
    ];
    assert_eq!(results, expected);
}

#[test]
fn a_failed_multi_changes_only_the_zxid() {
    let mut stage = Stage::new();
    let (client, _) = stage.connect();
    stage.create(client, "/a").expect("created");
    stage.write(client, create("/a/e", CreateMode::Ephemeral)).expect("created");
    let before = stage.model.snapshot();
    stage.model.take_changes();
    let results = stage.multi(
        client,
        vec![
            set("/a", "other", 0),
            set("/a", "and another", 1),
            delete("/a/e"),
            create("/a/e", CreateMode::Container),
            create("/a/e/deep", CreateMode::Ttl(5)),
            delete("/a/e/deep"),
            check("/a", 7),
            create("/b", CreateMode::Persistent),
        ],
    );
    let ok = OpResult::Error(0);
    let mut expected = vec![ok; 6];
    expected.push(OpResult::Error(ErrorCode::BadVersion.number()));
    expected.push(OpResult::Error(ErrorCode::RuntimeInconsistency.number()));
    assert_eq!(results, expected);
    let after = stage.model.snapshot();
    assert_eq!((after.nodes, after.sessions), (before.nodes, before.sessions));
    let changes = stage.model.take_changes();
    assert_eq!((changes.zxid, changes.rows), (before.zxid + 1, vec![]), "only the zxid is stored");
}

#[test]
fn an_empty_multi_is_a_transaction() {
    let mut stage = Stage::new();
    let (client, _) = stage.connect();
    let before = stage.model.zxid();
    assert_eq!(stage.multi(client, vec![]), []);
    assert_eq!(stage.model.zxid(), before + 1);
}

#[test]
fn a_create2_inside_a_multi_has_no_stat_on_3_8_0_only() {
    for compat in [Compat::V3_9, Compat::V3_8_0] {
        let mut stage = Stage::with(Config { compat, ..Config::default() });
        let (client, _) = stage.connect();
        let results = stage.multi(client, vec![with_stat("/a")]);
        let path = "/a".to_owned();
        let expected = match compat {
            Compat::V3_9 => OpResult::Create2 { path, stat: stage.stat(client, "/a") },
            Compat::V3_8_0 => OpResult::Create { path },
        };
        assert_eq!(results, [expected]);
        let alone = stage.write(client, with_stat("/b"));
        let stat = stage.stat(client, "/b");
        assert_eq!(alone, Ok(Response::PathStat("/b".to_owned(), stat)), "a single create2 has a stat");
    }
}

#[test]
fn reads_of_a_multi_read_fail_separately() {
    let mut stage = Stage::new();
    let (client, _) = stage.connect();
    stage.create(client, "/a").expect("created");
    let (no, a, root) = ("/no".to_owned(), "/a".to_owned(), "/".to_owned());
    let reads = vec![
        Request::GetData { path: no, watch: true },
        Request::GetData { path: a, watch: true },
        Request::GetChildren { path: root, watch: true, stat: false },
    ];
    let before = stage.model.zxid();
    let Ok(Response::Multi(results)) = stage.ask(client, Request::MultiRead(reads)) else {
        panic!("no reply")
    };
    assert_eq!(results[0], OpResult::Error(ErrorCode::NoNode.number()));
    assert!(matches!(&results[1], OpResult::GetData { data: Some(data), .. } if data.as_ref() == b"x"));
    assert_eq!(results[2], OpResult::GetChildren(vec!["a".to_owned(), "zookeeper".to_owned()]));
    assert_eq!(stage.model.zxid(), before, "reads consume no zxid");
    assert_eq!(stage.model.watch_count(), 0, "a multi-read sets no watch, as in ZooKeeper");
}

#[test]
fn a_create_with_unknown_flags_fails_alone_in_3_8_and_makes_the_multi_malformed_in_3_9() {
    const CREATE: i32 = 1;
    const CREATE_TTL: i32 = 21;
    for (compat, code, malformed) in [
        (Compat::V3_9, CREATE, true),
        (Compat::V3_9, CREATE_TTL, false),
        (Compat::V3_8_0, CREATE, false),
        (Compat::V3_8_0, CREATE_TTL, false),
    ] {
        let mut stage = Stage::with(Config { compat, ..Config::default() });
        let (client, _) = stage.connect();
        let before = stage.model.zxid();
        let ops = vec![create("/a", CreateMode::Persistent), Op::Unknown { code }];
        let expected = if malformed {
            Err(ErrorCode::MarshallingError)
        } else {
            Ok(Response::Multi(vec![OpResult::Error(0), OpResult::Error(ErrorCode::BadArguments.number())]))
        };
        assert_eq!(stage.ask(client, Request::Multi(ops)), expected, "{compat:?}, {code}");
        assert!(!stage.exists(client, "/a"));
        assert_eq!(stage.model.zxid(), before + 1, "{compat:?}, {code}");
    }
}

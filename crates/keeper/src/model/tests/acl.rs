use super::stage::{Stage, check, create, create_with, delete, entry, set, world};
use crate::model::{Config, ConnectionId, Effect, Input};
use crate::proto::{Acl, CreateMode, ErrorCode, Id, Op, OpResult, Request, Response};

const READ: i32 = 1;
const WRITE: i32 = 2;
const CREATE: i32 = 4;
const DELETE: i32 = 8;
const ADMIN: i32 = 16;
const ALL: i32 = 31;

/// The digest of `u:p`, as computed by ZooKeeper.
const U_P: &str = "u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ=";

fn authenticate(stage: &mut Stage, client: ConnectionId, auth: &str) {
    let request = Request::Auth { scheme: "digest".to_owned(), auth: auth.as_bytes().to_vec() };
    assert_eq!(stage.ask(client, request), Ok(Response::Empty));
}

fn get_acl(stage: &mut Stage, client: ConnectionId, path: &str) -> Result<Vec<Acl>, ErrorCode> {
    match stage.ask(client, Request::GetAcl { path: path.to_owned() })? {
        Response::Acl(acl, _stat) => Ok(acl),
        other => panic!("{other:?}"),
    }
}

fn set_acl(path: &str, acl: Vec<Acl>, version: i32) -> Request {
    Request::SetAcl { path: path.to_owned(), acl, version }
}

#[test]
fn each_request_needs_its_permission_on_its_znode() {
    let path = || "/p".to_owned();
    let requests: Vec<(Request, i32)> = vec![
        (Request::GetData { path: path(), watch: false }, READ),
        (Request::GetChildren { path: path(), watch: false, stat: false }, READ),
        (Request::GetChildren { path: path(), watch: false, stat: true }, READ),
        (Request::CountDescendants { path: path() }, READ),
        (Request::Write(set("/p", "", -1)), WRITE),
        (Request::Write(create("/p/new", CreateMode::Persistent)), CREATE),
        (Request::Write(delete("/p/child")), DELETE),
        (set_acl("/p", vec![world(ALL)], -1), ADMIN),
        (Request::GetAcl { path: path() }, READ | ADMIN),
        (Request::Exists { path: path(), watch: false }, READ),
        (Request::Sync { path: path() }, ALL),
    ];
    for (request, needed) in requests {
        for permission in [READ, WRITE, CREATE, DELETE, ADMIN] {
            let mut stage = Stage::new();
            let (client, _) = stage.connect();
            stage.create(client, "/p").expect("created");
            stage
                .write(client, create_with("/p/child", CreateMode::Persistent, vec![world(READ)]))
                .expect("created");
            stage.ask(client, set_acl("/p", vec![world(permission)], -1)).expect("set");
            let result = stage.ask(client, request.clone());
            if needed & permission == 0 {
                assert_eq!(result, Err(ErrorCode::NoAuth), "{request:?} with {permission}");
            } else {
                assert!(result.is_ok(), "{request:?} with {permission}: {result:?}");
            }
        }
    }
}

#[test]
fn a_check_in_a_multi_needs_the_read_permission() {
    for permission in [READ, WRITE, CREATE, DELETE, ADMIN] {
        let mut stage = Stage::new();
        let (client, _) = stage.connect();
        stage
            .write(client, create_with("/p", CreateMode::Persistent, vec![world(permission)]))
            .expect("created");
        let expected = match permission {
            READ => OpResult::Check,
            _ => OpResult::Error(ErrorCode::NoAuth.number()),
        };
        assert_eq!(stage.multi(client, vec![check("/p", -1)]), [expected]);
    }
}

#[test]
fn an_acl_that_no_scheme_can_match_is_rejected() {
    let mut stage = Stage::new();
    let (client, _) = stage.connect();
    let refused = [
        entry(ALL, "ip", "x"),
        entry(ALL, "ip", "1.2.3.4/33"),
        entry(ALL, "digest", "a"),
        entry(ALL, "digest", "a:"),
        entry(ALL, "digest", "a:b:c"),
        entry(ALL, "super", ""),
        entry(ALL, "sasl", "x"),
        entry(ALL, "x509", "x"),
        entry(ALL, "auth", ""),
        entry(ALL, "world", "x"),
        entry(ALL, "", "x"),
    ];
    for acl in refused {
        let result =
            stage.write(client, create_with("/a", CreateMode::Persistent, vec![world(ALL), acl.clone()]));
        assert_eq!(result, Err(ErrorCode::InvalidAcl), "{acl:?}");
    }
    let taken =
        [entry(ALL, "ip", "1.2.3.4/8"), entry(ALL, "digest", "a:b"), entry(ALL, "digest", ":b"), world(0)];
    for acl in taken {
        stage.write(client, create_with("/a", CreateMode::Persistent, vec![acl])).expect("created");
        stage.write(client, delete("/a")).expect("deleted");
    }
}

#[test]
fn auth_is_replaced_by_all_digests_of_the_creator() {
    let mut stage = Stage::new();
    let (client, _) = stage.connect();
    authenticate(&mut stage, client, "u:p");
    authenticate(&mut stage, client, "v");
    let acl = vec![entry(READ, "auth", "whatever"), world(READ), world(READ)];
    stage.write(client, create_with("/a", CreateMode::Persistent, acl)).expect("created");
    let digest = |id: &str| entry(READ, "digest", id);
    // Readers see the users of digests but not their hashes.
    let seen = get_acl(&mut stage, client, "/a").expect("readable");
    assert_eq!(seen, [digest("u:x"), digest("v:x"), world(READ)]);
    assert_eq!(stage.model.tree.get("/a").expect("created").acl[0], digest(U_P));
    let (stranger, _) = stage.connect();
    assert_eq!(get_acl(&mut stage, stranger, "/a").expect("readable"), seen);
}

#[test]
fn a_digest_grants_access_after_authentication() {
    let mut stage = Stage::new();
    let (owner, _) = stage.connect();
    let (stranger, _) = stage.connect();
    authenticate(&mut stage, owner, "u:p");
    stage
        .write(owner, create_with("/a", CreateMode::Persistent, vec![entry(ALL, "digest", U_P)]))
        .expect("created");
    assert_eq!(get_acl(&mut stage, owner, "/a").expect("an administrator"), [entry(ALL, "digest", U_P)]);
    assert_eq!(get_acl(&mut stage, stranger, "/a"), Err(ErrorCode::NoAuth));
    assert_eq!(stage.write(stranger, set("/a", "", -1)), Err(ErrorCode::NoAuth));
    authenticate(&mut stage, stranger, "u:wrong");
    assert_eq!(stage.write(stranger, set("/a", "", -1)), Err(ErrorCode::NoAuth));
    authenticate(&mut stage, stranger, "u:p");
    stage.write(stranger, set("/a", "", -1)).expect("authenticated");
}

#[test]
fn an_address_is_an_identity_without_authentication() {
    let mut stage = Stage::new();
    let (client, _) = stage.connect();
    for (id, open) in [("127.0.0.1", true), ("127.0.0.0/8", true), ("10.0.0.0/8", false)] {
        stage
            .write(client, create_with("/a", CreateMode::Persistent, vec![entry(ALL, "ip", id)]))
            .expect("created");
        assert_eq!(stage.write(client, set("/a", "", -1)).is_ok(), open, "{id}");
        stage.write(client, delete("/a")).expect("a deletion needs a permission on the parent");
    }
}

#[test]
fn the_super_digest_passes_every_acl() {
    let config = Config { super_digest: Some(U_P.to_owned()), ..Config::default() };
    let mut stage = Stage::with(config);
    let (client, _) = stage.connect();
    stage.write(client, create_with("/a", CreateMode::Persistent, vec![world(0)])).expect("created");
    assert_eq!(stage.write(client, set("/a", "", -1)), Err(ErrorCode::NoAuth));
    authenticate(&mut stage, client, "u:p");
    stage.write(client, set("/a", "", -1)).expect("super");
    stage.write(client, set("/zookeeper/config", "", -1)).expect("super");
}

#[test]
fn an_unknown_scheme_closes_the_connection_but_not_the_session() {
    let mut stage = Stage::new();
    let (client, hello) = stage.connect();
    let request = Request::Auth { scheme: "nope".to_owned(), auth: vec![] };
    let effects = stage.input(client, crate::model::Input::Request { xid: -4, request });
    let reply = crate::proto::Reply { xid: -4, zxid: 0, result: Err(ErrorCode::AuthFailed) };
    assert_eq!(effects, [Effect::Reply(client, reply), Effect::Close(client)]);
    assert_eq!(stage.model.session_of(client), None);
    assert_eq!(stage.model.sessions().map(|view| view.id).collect::<Vec<_>>(), [hello.session_id]);
}

#[test]
fn who_am_i_returns_names_without_secrets() {
    let mut stage = Stage::new();
    let (client, _) = stage.connect();
    authenticate(&mut stage, client, "u:p");
    authenticate(&mut stage, client, "u:p");
    let id = |scheme: &str, id: &str| Id { scheme: scheme.to_owned(), id: id.to_owned() };
    let expected = vec![id("ip", "127.0.0.1"), id("digest", "u")];
    assert_eq!(stage.ask(client, Request::WhoAmI), Ok(Response::Identities(expected)));
}

#[test]
fn acls_have_their_own_version() {
    let mut stage = Stage::new();
    let (client, _) = stage.connect();
    stage.create(client, "/a").expect("created");
    assert_eq!(stage.ask(client, set_acl("/a", vec![world(ALL)], 1)), Err(ErrorCode::BadVersion));
    stage.ask(client, set_acl("/a", vec![world(ALL)], 0)).expect("set");
    let stat = stage.stat(client, "/a");
    assert_eq!((stat.version, stat.aversion, stat.mzxid), (0, 1, stat.czxid));
    for (path, acl, code) in [
        ("/no", vec![world(ALL)], ErrorCode::NoNode),
        ("/no", vec![], ErrorCode::InvalidAcl),
        ("no", vec![], ErrorCode::BadArguments),
    ] {
        assert_eq!(stage.ask(client, set_acl(path, acl, -1)), Err(code));
    }
}

#[test]
fn a_check_inside_a_multi_needs_the_read_permission() {
    let mut stage = Stage::new();
    let (client, _) = stage.connect();
    stage.write(client, create_with("/a", CreateMode::Persistent, vec![world(WRITE)])).expect("created");
    let results = stage.multi(client, vec![Op::Check { path: "/a".to_owned(), version: 0 }]);
    assert_eq!(results, [crate::proto::OpResult::Error(ErrorCode::NoAuth.number())]);
}

/// Adds a digest of this user; returns `false` if it is rejected and the connection is closed.
fn proves(stage: &mut Stage, client: ConnectionId, user: String) -> bool {
    let auth = Request::Auth { scheme: "digest".to_owned(), auth: user.into_bytes() };
    match stage.input(client, Input::Request { xid: 1, request: auth }).as_slice() {
        [Effect::Reply(_, reply)] => reply.result == Ok(Response::Empty),
        [Effect::Reply(_, reply), Effect::Close(_)] => {
            assert_eq!(reply.result, Err(ErrorCode::AuthFailed));
            false
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn identities_and_acls_above_their_limit_are_rejected() {
    let mut stage = Stage::new();
    let (client, _) = stage.connect();
    let mut proven = 0;
    while proves(&mut stage, client, format!("user-{proven}:p")) {
        proven += 1;
        let mine = vec![entry(ALL, "auth", "")];
        let created = stage.write(client, create_with(&format!("/n{proven}"), CreateMode::Persistent, mine));
        assert!(created.is_ok(), "`auth` with {proven} identities exceeds the limit");
        assert!(proven < 1_000, "no limit");
    }
    assert!(proven > 50, "{proven}");

    let (client, _) = stage.connect();
    assert!(!proves(&mut stage, client, "u".repeat(1 << 20)));
    let (client, _) = stage.connect();
    authenticate(&mut stage, client, "u:p");
    let many = (0..40_000).map(|n| entry(ALL, "digest", &format!("u:{n}"))).collect();
    for list in [many, vec![entry(ALL, "digest", &format!("u:{}", "x".repeat(5_000)))]] {
        let created = stage.write(client, create_with("/d", CreateMode::Persistent, list));
        assert_eq!(created, Err(ErrorCode::InvalidAcl));
    }
    let doubles = vec![entry(ALL, "auth", ""); 40_000];
    assert!(stage.write(client, create_with("/d", CreateMode::Persistent, doubles)).is_ok());
    assert_eq!(get_acl(&mut stage, client, "/d"), Ok(vec![entry(ALL, "digest", U_P)]));
}

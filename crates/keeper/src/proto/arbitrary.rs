//! Random requests for property tests, with few names so that requests interact.

use std::sync::Arc;

use proptest::prelude::*;

use super::{Acl, AddWatchMode, CreateMode, Id, Intent, Op, Request, WatcherKind};

const NAMES: [&str; 3] = ["a", "b", "n-"];

fn entry(permissions: i32, scheme: &str, id: &str) -> Acl {
    Acl { permissions, id: Id { scheme: scheme.to_owned(), id: id.to_owned() } }
}

fn data() -> impl Strategy<Value = Option<Arc<[u8]>>> {
    prop::option::weighted(0.9, "[xy]{0,3}".prop_map(|text| Arc::from(text.into_bytes())))
}

fn path() -> impl Strategy<Value = String> {
    let names = prop::collection::vec(prop::sample::select(&NAMES[..]), 0..4);
    prop_oneof![
        12 => names.prop_map(|names| format!("/{}", names.join("/"))),
        1 => prop::sample::select(vec!["", "a", "/a/", "//", "/..", "/\0", "/zookeeper", "/zookeeper/quota"])
            .prop_map(str::to_owned),
    ]
}

fn acl() -> impl Strategy<Value = Vec<Acl>> {
    prop_oneof![
        10 => Just(vec![entry(31, "world", "anyone")]),
        1 => (0..32).prop_map(|permissions| vec![entry(permissions, "world", "anyone")]),
        1 => Just(vec![entry(31, "auth", ""), entry(1, "world", "anyone")]),
        1 => Just(vec![]),
    ]
}

fn mode() -> impl Strategy<Value = CreateMode> {
    prop_oneof![
        6 => Just(CreateMode::Persistent),
        1 => Just(CreateMode::PersistentSequential),
        2 => Just(CreateMode::Ephemeral),
        1 => Just(CreateMode::EphemeralSequential),
        1 => Just(CreateMode::Container),
        1 => Just(CreateMode::ContainerSequential),
        1 => (0..2000_i64).prop_map(CreateMode::Ttl),
        1 => (0..2000_i64).prop_map(CreateMode::TtlSequential),
    ]
}

fn version() -> impl Strategy<Value = i32> {
    prop_oneof![3 => Just(-1), 1 => 0..3]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (path(), acl(), mode(), any::<bool>(), data()).prop_map(|(path, acl, mode, stat, data)| {
            // Only `create` has a reply without a stat, and it cannot create these modes.
            let extended = match mode {
                CreateMode::Persistent
                | CreateMode::PersistentSequential
                | CreateMode::Ephemeral
                | CreateMode::EphemeralSequential => false,
                CreateMode::Container
                | CreateMode::ContainerSequential
                | CreateMode::Ttl(_)
                | CreateMode::TtlSequential(_) => true,
            };
            Op::Create { path, data, acl, mode, stat: stat || extended }
        }),
        3 => (path(), version()).prop_map(|(path, version)| Op::Delete { path, version }),
        2 => (path(), version(), data()).prop_map(|(path, version, data)| Op::SetData { path, data, version }),
        1 => (path(), version()).prop_map(|(path, version)| Op::Check { path, version }),
    ]
}

/// An operation of a multi. In 3.8 its flags cannot express a sequential container.
fn part() -> impl Strategy<Value = Op> {
    op().prop_map(|mut op| {
        if let Op::Create { mode: mode @ CreateMode::ContainerSequential, .. } = &mut op {
            *mode = CreateMode::Container;
        }
        op
    })
}

pub(crate) fn request() -> impl Strategy<Value = Request> {
    let paths = || prop::collection::vec(path(), 0..3);
    let kind = prop::sample::select(vec![
        WatcherKind::Children,
        WatcherKind::Data,
        WatcherKind::Any,
        WatcherKind::Persistent,
        WatcherKind::PersistentRecursive,
    ]);
    let watch_mode = prop::sample::select(vec![AddWatchMode::Persistent, AddWatchMode::PersistentRecursive]);
    prop_oneof![
        8 => op().prop_map(Request::Write),
        4 => prop::collection::vec(part(), 0..5).prop_map(Request::Multi),
        2 => (path(), any::<bool>()).prop_map(|(path, watch)| Request::Exists { path, watch }),
        2 => (path(), any::<bool>()).prop_map(|(path, watch)| Request::GetData { path, watch }),
        2 => (path(), any::<bool>(), any::<bool>())
            .prop_map(|(path, watch, stat)| Request::GetChildren { path, watch, stat }),
        1 => (path(), acl(), version()).prop_map(|(path, acl, version)| Request::SetAcl { path, acl, version }),
        1 => path().prop_map(|path| Request::GetAcl { path }),
        1 => path().prop_map(|path| Request::Sync { path }),
        1 => prop::collection::vec((path(), any::<bool>(), any::<bool>()), 0..3).prop_map(|reads| {
            let read = |(path, watch, data)| match data {
                true => Request::GetData { path, watch },
                false => Request::GetChildren { path, watch, stat: false },
            };
            Request::MultiRead(reads.into_iter().map(read).collect())
        }),
        1 => path().prop_map(|path| Request::CountDescendants { path }),
        1 => path().prop_map(|prefix| Request::GetEphemerals { prefix }),
        1 => (path(), watch_mode).prop_map(|(path, mode)| Request::AddWatch { path, mode }),
        1 => (path(), kind.clone()).prop_map(|(path, kind)| Request::CheckWatches { path, kind }),
        1 => (path(), kind).prop_map(|(path, kind)| Request::RemoveWatches { path, kind }),
        1 => Just(Request::Ping),
        1 => Just(Request::WhoAmI),
        1 => (0..40_i64, paths(), paths(), paths(), paths(), paths()).prop_map(
            |(relative_zxid, data, exist, child, persistent, recursive)| Request::SetWatches {
                relative_zxid, data, exist, child, persistent, recursive,
            }
        ),
        1 => Just(Request::Auth { scheme: "digest".to_owned(), auth: b"u:p".to_vec() }),
        1 => Just(Request::Auth { scheme: "nope".to_owned(), auth: vec![] }),
        1 => Just(Request::CloseSession),
        1 => prop::sample::select(vec![Intent::Read, Intent::Write, Intent::Check, Intent::Multi, Intent::Auth])
            .prop_map(Request::Malformed),
        1 => Just(Request::Unsupported { code: 9999 }),
    ]
}

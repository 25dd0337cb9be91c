//! Read requests, and requests for watches and sessions.

use fastrand::Rng;

use super::acl::credentials;
use super::pick::{odd_int, path, shown};
use super::write::enclose;
use super::{
    ADD_WATCH, AUTH, CHECK_WATCHES, EXISTS, GET_ACL, GET_ALL_CHILDREN_NUMBER, GET_CHILDREN, GET_CHILDREN2,
    GET_DATA, GET_EPHEMERALS, MULTI_READ, REMOVE_WATCHES, SET_WATCHES, SET_WATCHES2, SYNC, WHO_AM_I,
};
use crate::script::Call;
use crate::wire::{Writer, readable};

/// The fixed xids of `auth` and `setWatches`, as in every client library.
const AUTH_XID: i32 = -4;
const SET_WATCHES_XID: i32 = -8;

pub(super) fn exists(rng: &mut Rng) -> Call {
    watched(rng, EXISTS, "exists")
}

pub(super) fn get_data(rng: &mut Rng) -> Call {
    watched(rng, GET_DATA, "getData")
}

pub(super) fn get_children(rng: &mut Rng) -> Call {
    if rng.bool() {
        watched(rng, GET_CHILDREN, "getChildren")
    } else {
        watched(rng, GET_CHILDREN2, "getChildren2")
    }
}

fn watched(rng: &mut Rng, op: i32, name: &str) -> Call {
    let (path, watch) = (path(rng), rng.bool());
    let body = Writer::default().buffer(Some(&path)).bool(watch).0;
    Call::new(op, body, format!("{name} {} watch {watch}", shown(&path)))
}

/// Requests whose only field is a path.
pub(super) fn of_path(rng: &mut Rng) -> Call {
    const OPS: [(i32, &str); 4] = [
        (GET_ACL, "getACL"),
        (SYNC, "sync"),
        (GET_ALL_CHILDREN_NUMBER, "getAllChildrenNumber"),
        (GET_EPHEMERALS, "getEphemerals"),
    ];
    const PREFIXES: [&str; 6] = ["", " ", " / ", "/a/", "/a/s", "x"];
    let (op, name) = OPS[rng.usize(..OPS.len())];
    let path = if op == GET_EPHEMERALS && rng.bool() { PREFIXES[rng.usize(..6)].into() } else { path(rng) };
    Call::new(op, Writer::default().buffer(Some(&path)).0, format!("{name} {}", shown(&path)))
}

pub(super) fn who_am_i() -> Call {
    Call::new(WHO_AM_I, Vec::new(), "whoAmI".to_owned())
}

pub(super) fn multi_read(rng: &mut Rng) -> Call {
    let count = rng.usize(..5);
    let calls: Vec<Call> = (0..count)
        .map(|_| match rng.u32(..40) {
            0 => super::write::set_data(rng),
            1 => exists(rng),
            2..20 => watched(rng, GET_CHILDREN, "getChildren"),
            _ => get_data(rng),
        })
        .collect();
    enclose(rng, MULTI_READ, "multiRead", &calls)
}

pub(super) fn add_watch(rng: &mut Rng) -> Call {
    let path = path(rng);
    let mode = if rng.u32(..20) == 0 { odd_int(rng) } else { rng.i32(0..2) };
    Call::new(
        ADD_WATCH,
        Writer::default().buffer(Some(&path)).int(mode).0,
        format!("addWatch {} mode {mode}", shown(&path)),
    )
}

pub(super) fn check_or_remove_watches(rng: &mut Rng) -> Call {
    let (op, name) =
        if rng.bool() { (CHECK_WATCHES, "checkWatches") } else { (REMOVE_WATCHES, "removeWatches") };
    let path = path(rng);
    let kind = if rng.u32(..20) == 0 { odd_int(rng) } else { rng.i32(1..6) };
    Call::new(
        op,
        Writer::default().buffer(Some(&path)).int(kind).0,
        format!("{name} {} kind {kind}", shown(&path)),
    )
}

pub(super) fn set_watches(rng: &mut Rng) -> Call {
    let (op, vectors, name) =
        if rng.bool() { (SET_WATCHES, 3, "setWatches") } else { (SET_WATCHES2, 5, "setWatches2") };
    let back = match rng.u32(..10) {
        0..3 => 0,
        3..7 => rng.i64(1..30),
        7..8 => i64::MAX,
        _ => -1_000,
    };
    let mut body = Writer::default().long(0);
    let mut text = format!("{name} since {back} before");
    for _ in 0..vectors {
        let count = rng.usize(..3);
        let paths: Vec<Vec<u8>> = (0..count).map(|_| path(rng)).collect();
        let shown: Vec<String> = paths.iter().map(|path| shown(path)).collect();
        text = format!("{text} [{}]", shown.join(", "));
        body = body.strings(&paths);
    }
    Call { since: Some(back), xid: Some(SET_WATCHES_XID), ..Call::new(op, body.0, text) }
}

pub(super) fn auth(rng: &mut Rng) -> Call {
    let (scheme, auth) = credentials(rng);
    let body = Writer::default().int(0).buffer(Some(scheme.as_bytes())).buffer(Some(&auth)).0;
    Call { xid: Some(AUTH_XID), ..Call::new(AUTH, body, format!("auth {scheme} {}", readable(&auth))) }
}

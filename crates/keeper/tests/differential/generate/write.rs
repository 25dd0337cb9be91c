//! Write requests, single and in multis.

use fastrand::Rng;

use super::acl::{acl, changed_acl};
use super::pick::{data, odd_int, path, shown, stem, version};
use super::{CHECK, CREATE, CREATE_CONTAINER, CREATE_TTL, CREATE2, DELETE, MULTI, SET_ACL, SET_DATA};
use crate::script::Call;
use crate::wire::{Writer, readable};

/// The largest TTL that fits into `ephemeralOwner`.
const MAX_TTL_MS: i64 = 0xff_ffff_ffff;
/// Longer than any run, so that no server removes a TTL znode.
const TTL_MS: i64 = 1_000_000_000;

/// Flags that are not a valid mode.
const NOBODYS_FLAGS: i32 = 99;

pub(super) fn create(rng: &mut Rng) -> Call {
    let (op, mut flags) = match rng.u32(..100) {
        0..30 => (CREATE, 0),
        30..50 => (CREATE2, 0),
        50..64 => (CREATE, 1),
        64..70 => (CREATE2, 1),
        70..76 => (CREATE, 2),
        76..80 => (CREATE2, 2),
        80..84 => (CREATE2, 3),
        84..90 => (CREATE_CONTAINER, 4),
        90..95 => (CREATE_TTL, 5),
        _ => (CREATE_TTL, 6),
    };
    if rng.u32(..40) == 0 {
        flags = if rng.bool() { rng.i32(0..8) } else { odd_int(rng) };
        if op == CREATE_TTL && (0..5).contains(&flags) {
            // With a negative TTL, ZooKeeper accepts the flags of other modes and fails when it writes the znode.
            flags = NOBODYS_FLAGS;
        }
    }
    let path = if matches!(flags, 2 | 3 | 6) { stem(rng) } else { path(rng) };
    let (data, (acl, acl_text)) = (data(rng), acl(rng));
    let mut body = Writer::default().buffer(Some(&path)).buffer(data.as_deref()).bytes(&acl).int(flags);
    let mut text = format!("create {} {} {acl_text} flags {flags}", shown(&path), optional(data.as_deref()));
    if op == CREATE_TTL {
        let ttl = ttl(rng);
        body = body.long(ttl);
        text = format!("{text} ttl {ttl}");
    }
    Call::new(op, body.0, format!("op {op} {text}"))
}

fn ttl(rng: &mut Rng) -> i64 {
    match rng.u32(..10) {
        0 => [0, -1, i64::MIN, i64::MAX, MAX_TTL_MS, MAX_TTL_MS + 1][rng.usize(..6)],
        _ => TTL_MS + rng.i64(0..5),
    }
}

pub(super) fn delete(rng: &mut Rng) -> Call {
    let (path, version) = (path(rng), version(rng));
    let body = Writer::default().buffer(Some(&path)).int(version).0;
    Call::new(DELETE, body, format!("delete {} v {version}", shown(&path)))
}

pub(super) fn set_data(rng: &mut Rng) -> Call {
    let (path, data, version) = (path(rng), data(rng), version(rng));
    let body = Writer::default().buffer(Some(&path)).buffer(data.as_deref()).int(version).0;
    Call::new(SET_DATA, body, format!("setData {} {} v {version}", shown(&path), optional(data.as_deref())))
}

pub(super) fn set_acl(rng: &mut Rng) -> Call {
    let (path, (acl, acl_text), version) = (path(rng), changed_acl(rng), version(rng));
    let body = Writer::default().buffer(Some(&path)).bytes(&acl).int(version).0;
    Call::new(SET_ACL, body, format!("setACL {} {acl_text} v {version}", shown(&path)))
}

fn check(rng: &mut Rng) -> Call {
    let (path, version) = (path(rng), version(rng));
    let body = Writer::default().buffer(Some(&path)).int(version).0;
    Call::new(CHECK, body, format!("check {} v {version}", shown(&path)))
}

pub(super) fn multi(rng: &mut Rng) -> Call {
    let count = rng.usize(..6);
    let calls: Vec<Call> = (0..count)
        .map(|_| match rng.u32(..100) {
            0..42 => create_in_multi(rng),
            42..60 => delete(rng),
            60..78 => set_data(rng),
            78..96 => check(rng),
            96..97 => set_acl(rng),
            97..98 => super::read::exists(rng),
            98..99 => super::read::get_data(rng),
            _ => Call::new(odd_int(rng), Vec::new(), "nothing".to_owned()),
        })
        .collect();
    enclose(rng, MULTI, "multi", &calls)
}

/// In a multi, ZooKeeper fails on the flags of a TTL in a create without a TTL, and 3.9 on a null ACL. 3.8 does not
/// revert the operations before it, and 3.9 assigns no zxid.
fn create_in_multi(rng: &mut Rng) -> Call {
    loop {
        let call = create(rng);
        let ttl_flags = call.text.ends_with("flags 5") || call.text.ends_with("flags 6");
        let null_acl = call.text.contains(" acl null ");
        if call.op == CREATE_TTL || !(ttl_flags || null_acl) {
            return call;
        }
    }
}

/// Encodes the operations of a multi: a header before each, and an end marker.
pub(super) fn enclose(rng: &mut Rng, op: i32, name: &str, calls: &[Call]) -> Call {
    let body = calls
        .iter()
        .fold(Writer::default(), |writer, call| writer.int(call.op).bool(false).int(-1).bytes(&call.body));
    let body = match rng.u32(..60) {
        0 => body,
        1 => body.int(0).bool(true).int(0),
        _ => body.int(-1).bool(true).int(-1),
    };
    let texts: Vec<String> = calls.iter().map(|call| format!("({})", call.text)).collect();
    Call::new(op, body.0, format!("{name} {}", texts.join(" ")))
}

fn optional(data: Option<&[u8]>) -> String {
    data.map_or_else(|| "null".to_owned(), readable)
}

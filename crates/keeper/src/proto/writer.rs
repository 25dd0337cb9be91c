//! Appends primitives of the protocol to a buffer.

use super::{Acl, Id, Stat};

pub(super) fn i32(out: &mut Vec<u8>, value: i32) {
    out.extend_from_slice(&value.to_be_bytes());
}

pub(super) fn i64(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(&value.to_be_bytes());
}

pub(super) fn bool(out: &mut Vec<u8>, value: bool) {
    out.push(u8::from(value));
}

fn length(out: &mut Vec<u8>, length: usize) {
    i32(out, i32::try_from(length).expect("a frame is below 2 GiB"));
}

/// Appends a buffer; `None` is the null buffer.
pub(super) fn buffer(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => {
            length(out, bytes.len());
            out.extend_from_slice(bytes);
        }
        None => i32(out, -1),
    }
}

pub(super) fn string(out: &mut Vec<u8>, text: &str) {
    buffer(out, Some(text.as_bytes()));
}

pub(super) fn strings(out: &mut Vec<u8>, strings: &[String]) {
    length(out, strings.len());
    for text in strings {
        string(out, text);
    }
}

pub(super) fn ids(out: &mut Vec<u8>, ids: &[Id]) {
    length(out, ids.len());
    for Id { scheme, id } in ids {
        string(out, scheme);
        string(out, id);
    }
}

pub(super) fn acl(out: &mut Vec<u8>, acl: &[Acl]) {
    length(out, acl.len());
    for Acl { permissions, id: Id { scheme, id } } in acl {
        i32(out, *permissions);
        string(out, scheme);
        string(out, id);
    }
}

pub(super) fn stat(out: &mut Vec<u8>, stat: &Stat) {
    i64(out, stat.czxid);
    i64(out, stat.mzxid);
    i64(out, stat.ctime);
    i64(out, stat.mtime);
    i32(out, stat.version);
    i32(out, stat.cversion);
    i32(out, stat.aversion);
    i64(out, stat.ephemeral_owner);
    i32(out, stat.data_length);
    i32(out, stat.num_children);
    i64(out, stat.pzxid);
}

/// Appends a frame: the length and the bytes written by `body`.
pub(super) fn frame(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    i32(out, 0);
    body(out);
    let written = out.len() - start - size_of::<i32>();
    let written = i32::try_from(written).expect("a frame is below 2 GiB");
    out[start..start + size_of::<i32>()].copy_from_slice(&written.to_be_bytes());
}

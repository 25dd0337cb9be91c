//! Tests of the encoding of rows.

use std::sync::Arc;

use fastrand::Rng;

use super::super::row::{
    AclPool, INLINE_BYTES, RowData, RowError, decode_node, decode_session, encode_node, encode_session,
    is_apart,
};
use super::{row, session};
use crate::proto::{Acl, Id};
use crate::store::{NodeRow, SessionRow};

fn encoded(row: &NodeRow, data: RowData<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_node(row, data, &mut bytes);
    bytes
}

fn any_data(random: &mut Rng) -> Option<Vec<u8>> {
    let length = [0, 1, 100, INLINE_BYTES, INLINE_BYTES + 1][random.usize(..5)];
    random.bool().then(|| vec![random.u8(..); length])
}

fn any_i64(random: &mut Rng) -> i64 {
    match random.u8(..6) {
        0 => i64::MIN,
        1 => i64::MAX,
        2 => 0,
        3 => -1,
        // Numbers of every length.
        _ => random.i64(..) >> random.u8(..64),
    }
}

fn any_acl(random: &mut Rng) -> Acl {
    let text = |random: &mut Rng| (0..random.usize(..9)).map(|_| random.char(..)).collect();
    Acl { permissions: any_i64(random) as i32, id: Id { scheme: text(random), id: text(random) } }
}

fn any_row(random: &mut Rng) -> NodeRow {
    NodeRow {
        czxid: any_i64(random),
        mzxid: any_i64(random),
        pzxid: any_i64(random),
        ctime: any_i64(random),
        mtime: any_i64(random),
        version: any_i64(random) as i32,
        creates: any_i64(random) as i32,
        aversion: any_i64(random) as i32,
        ephemeral_owner: any_i64(random),
        acl: (0..random.usize(..4)).map(|_| any_acl(random)).collect(),
    }
}

#[test]
fn rows_are_decoded_as_they_were_encoded() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let mut acls = AclPool::default();
    for _ in 0..20_000 {
        let (row, data) = (any_row(&mut random), any_data(&mut random));
        let data = RowData::of(data.as_deref());
        let bytes = encoded(&row, data);
        assert_eq!(decode_node(&bytes, &mut acls), Ok((row, data)));
        assert_eq!(is_apart(&bytes), Ok(data == RowData::Apart));
    }
}

#[test]
fn damaged_rows_are_errors_or_other_rows_but_never_panics() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let mut acls = AclPool::default();
    let mut refused = 0;
    for _ in 0..50_000 {
        let data = any_data(&mut random);
        let mut bytes = encoded(&any_row(&mut random), RowData::of(data.as_deref()));
        match random.u8(..3) {
            0 => bytes.truncate(random.usize(..bytes.len())),
            1 => bytes.push(random.u8(..)),
            _ => {
                let at = random.usize(..bytes.len());
                bytes[at] = random.u8(..);
            }
        }
        match decode_node(&bytes, &mut acls) {
            // Each row has exactly one encoding, so re-encoding must return the same bytes.
            Ok((row, data)) => assert_eq!(encoded(&row, data), bytes),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 10_000, "{refused}");
}

#[test]
fn each_invalid_row_has_its_error() {
    let whole = encoded(&row(1), RowData::Null);
    let mut acls = AclPool::default();
    let mut read = |bytes: &[u8]| decode_node(bytes, &mut acls).map(|_| ());
    assert_eq!(read(&[]), Err(RowError::Short("version")));
    assert_eq!(read(&[9]), Err(RowError::Version(9)));
    assert_eq!(read(&whole[..1]), Err(RowError::Short("data")));
    assert_eq!(read(&whole[..2]), Err(RowError::Short("czxid")));
    assert_eq!(read(&[&whole[..], b"x"].concat()), Err(RowError::Trailing(1)));
    assert_eq!(read(&[[2, 0].as_slice(), &[0xff; 10]].concat()), Err(RowError::Range("czxid")));
    assert_eq!(read(&[2, 0, 0x80, 0]), Err(RowError::Range("czxid")), "a second encoding of 0");
    assert_eq!(read(&[2, 8, b'x']), Err(RowError::Short("data")), "one of two bytes is missing");
    let long = vec![b'x'; INLINE_BYTES + 1];
    assert_eq!(read(&encoded(&row(1), RowData::Inline(&long))), Err(RowError::Range("data")));

    let mut bytes = Vec::new();
    encode_session(&session(5), &mut bytes);
    assert_eq!(decode_session(&bytes), Ok(session(5)));
    assert_eq!(decode_session(&bytes[..4]), Err(RowError::Short("password")));
    assert_eq!(decode_session(&[2, 0xfe, 0xff, 0xff, 0xff, 0x7f, 0]), Err(RowError::Range("timeout")));
}

#[test]
fn an_excessive_count_allocates_no_memory() {
    // No data, eight zeros, an owner, and a list of 2^60 entries.
    let mut bytes = vec![2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend([0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20]);
    assert_eq!(decode_node(&bytes, &mut AclPool::default()), Err(RowError::Short("ACL")));
}

#[test]
fn a_typical_row_is_short_and_its_acl_is_shared() {
    let usual = NodeRow { ephemeral_owner: 0, ..row(1) };
    let bytes = encoded(&usual, RowData::Null);
    assert!(bytes.len() <= 26, "{}", bytes.len());
    let mut acls = AclPool::default();
    let (first, _null) = decode_node(&bytes, &mut acls).unwrap();
    let other = encoded(&row(2), RowData::Null);
    let (second, _null) = decode_node(&other, &mut acls).unwrap();
    assert!(Arc::ptr_eq(&first.acl, &second.acl));
    let empty = SessionRow { timeout_ms: 0, password: Vec::new() };
    let mut bytes = Vec::new();
    encode_session(&empty, &mut bytes);
    assert_eq!(decode_session(&bytes), Ok(empty));
}

//! ACLs and credentials.

use fastrand::Rng;

use crate::wire::Writer;

/// Returns the digest of `user:password`: `user:base64(sha1(user:password))`.
const DIGESTS: [(&str, &str); 3] = [
    ("alice:secret", "alice:aYXlLOpEooaV1cRAvUL1fp9Qt7E="),
    ("bob:secret", "bob:fyVmFCwVbTJYrznoSu1koqYEYF0="),
    ("carol:x", "carol:4ruPyIpMGhVrX6y0MJFb3MqVepY="),
];

/// The entries of an ACL: permissions, scheme, id.
type Entry = (i32, &'static str, &'static str);

const OPEN: Entry = (31, "world", "anyone");

/// Valid ACLs of common kinds.
const GOOD: &[&[Entry]] = &[
    &[OPEN],
    &[(1, "world", "anyone")],
    &[(15, "world", "anyone")],
    &[(31, "digest", DIGESTS[0].1), (1, "world", "anyone")],
    &[(31, "digest", DIGESTS[0].1)],
    &[(31, "digest", DIGESTS[1].1), (5, "digest", DIGESTS[0].1)],
    &[(31, "auth", "")],
    &[(31, "auth", "ignored"), (1, "world", "anyone")],
    &[(31, "ip", "127.0.0.1")],
    &[(31, "ip", "127.0.0.0/8")],
    &[(31, "ip", "10.0.0.1"), (17, "world", "anyone")],
    &[OPEN, OPEN],
    &[(16, "world", "anyone")],
    &[(30, "world", "anyone")],
];

/// ACLs that a server should reject, or that show how little it validates.
const ODD: &[&[Entry]] = &[
    &[],
    &[(31, "world", "someone")],
    &[(31, "digest", "alice")],
    &[(31, "digest", "alice:")],
    &[(31, "digest", ":x")],
    &[(31, "digest", "a:b:c")],
    &[(31, "digest", "")],
    &[(31, "ip", "300.1.1.1")],
    &[(31, "ip", "127.0.0")],
    &[(31, "ip", "127.0.0.1/33")],
    &[(31, "ip", "127.0.0.1/-1")],
    &[(31, "ip", "127.0.0.1/x")],
    &[(31, "ip", "127.0.0.1/")],
    &[(31, "ip", "")],
    &[(31, "super", "")],
    &[(31, "x509", "cn")],
    &[(31, "sasl", "me")],
    &[(31, "nobody", "x")],
    &[(31, "", "")],
    &[(0, "world", "anyone")],
    &[(32, "world", "anyone")],
    &[(-1, "world", "anyone")],
    &[OPEN, (31, "world", "someone")],
];

/// Returns the bytes and the description of an ACL. Mostly open ACLs, so that a run does not lock itself out.
pub(super) fn acl(rng: &mut Rng) -> (Vec<u8>, String) {
    let entries = match rng.u32(..100) {
        0..78 => &[OPEN],
        78..95 => GOOD[rng.usize(..GOOD.len())],
        95..99 => ODD[rng.usize(..ODD.len())],
        _ => return (Writer::default().int(-1).0, "acl null".to_owned()),
    };
    list(entries)
}

/// Returns an ACL for `setACL`, more often restricted.
pub(super) fn changed_acl(rng: &mut Rng) -> (Vec<u8>, String) {
    match rng.u32(..10) {
        0..5 => list(&[OPEN]),
        5..9 => list(GOOD[rng.usize(..GOOD.len())]),
        _ => list(ODD[rng.usize(..ODD.len())]),
    }
}

fn list(entries: &[Entry]) -> (Vec<u8>, String) {
    let count = i32::try_from(entries.len()).expect("a small number");
    let bytes = entries.iter().fold(Writer::default().int(count), |writer, (permissions, scheme, id)| {
        writer.int(*permissions).buffer(Some(scheme.as_bytes())).buffer(Some(id.as_bytes()))
    });
    (bytes.0, if entries == [OPEN] { "open".to_owned() } else { format!("acl {entries:?}") })
}

/// Returns the credentials of an `auth` request. One in four is rejected, which closes the connection.
pub(super) fn credentials(rng: &mut Rng) -> (&'static str, Vec<u8>) {
    const ODD: [(&str, &[u8]); 9] = [
        ("nobody", b"x"),
        ("world", b"anyone"),
        ("super", b"super:admin"),
        ("x509", b""),
        ("auth", b""),
        ("", b""),
        ("sasl", b"me"),
        ("digest", b"no-colon"),
        ("digest", b"\xff:\xfe"),
    ];
    match rng.u32(..4) {
        0 => {
            let (scheme, auth) = ODD[rng.usize(..ODD.len())];
            (scheme, auth.into())
        }
        1 => ("ip", b"whatever".into()),
        _ => ("digest", DIGESTS[rng.usize(..DIGESTS.len())].0.into()),
    }
}

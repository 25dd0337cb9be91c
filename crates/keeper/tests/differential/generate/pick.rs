//! Small pools of values, so that requests interact: few paths, identities and versions.

use fastrand::Rng;

use crate::script::ClientNumber;
use crate::wire::readable;

/// Paths that no client library accepts, and some that only look like it.
const HOSTILE: &[&[u8]] = &[
    b"",
    b"a",
    b"a/x",
    b"//",
    b"/a/",
    b"/a//x",
    b"//a",
    b"/.",
    b"/..",
    b"/a/.",
    b"/a/..",
    b"/a/./x",
    b"/a/../b",
    b"/a/.x",
    b"/a/..x",
    b"/a/x.",
    b"/...",
    b"/a\0",
    b"/a/\0x",
    b"\0",
    b"/a/\x01",
    b"/a/\x1f",
    b"/a/\n",
    b"/a/\x7f",
    b"/a/\xc2\x80",
    b"/a/\xc2\x9f",
    b"/a/\xc2\xa0",
    b"/a/\xc3\xa9",
    b"/a/\xe2\x82\xac",
    b"/a/\xed\x9f\xbf",
    b"/a/\xed\xa0\x80",
    b"/a/\xed\xbf\xbf",
    b"/a/\xee\x80\x80",
    b"/a/\xef\xa3\xbf",
    b"/a/\xef\xa4\x80",
    b"/a/\xef\xbf\xaf",
    b"/a/\xef\xbf\xb0",
    b"/a/\xef\xbf\xbd",
    b"/a/\xf0\x9f\xa6\x80",
    b"/a/\xff",
    b"/a/\xc3",
    b"/a/\xc3(",
    b"/a/\xc0\xaf",
    b"/\xff\xfe",
    b"/zookeeper/config",
    b"/zookeeper/quota",
    b"/zookeeper",
    b"/zookeeper/",
    b" ",
    b"/ ",
    b"/a/ ",
    b"/a x",
    b"/a:b",
    b"/a%2Fx",
    b"/missing/parent",
];

/// Twice as deep as any realistic path.
const DEEP: usize = 200;
/// A name that a file system would reject.
const LONG: usize = 5_000;

/// Returns a path: mostly one of ten that exist or may exist, in one of fifty cases a hostile one.
pub(super) fn path(rng: &mut Rng) -> Vec<u8> {
    const TOP: [&str; 2] = ["/a", "/b"];
    const BELOW: [&str; 2] = ["/x", "/y"];
    let top = TOP[rng.usize(..TOP.len())];
    let below = BELOW[rng.usize(..BELOW.len())];
    match rng.u32(..100) {
        0..30 => top.into(),
        30..76 => format!("{top}{below}").into(),
        76..90 => format!("{top}{below}/p").into(),
        90..93 => b"/".into(),
        93..94 => b"/zookeeper".into(),
        94..98 => numbered(rng),
        _ => hostile(rng),
    }
}

/// Returns a name that a sequential create may have produced.
fn numbered(rng: &mut Rng) -> Vec<u8> {
    const STEMS: [&str; 3] = ["/a/s", "/a/x/s", "/b/"];
    format!("{}{:010}", STEMS[rng.usize(..STEMS.len())], rng.u32(..6)).into()
}

/// Returns a path for a sequential create.
pub(super) fn stem(rng: &mut Rng) -> Vec<u8> {
    const STEMS: [&str; 5] = ["/a/s", "/a/x/s", "/b/", "/a/x", "/s"];
    match rng.u32(..20) {
        0 => hostile(rng),
        _ => STEMS[rng.usize(..STEMS.len())].into(),
    }
}

/// Returns an invalid path.
pub(super) fn hostile(rng: &mut Rng) -> Vec<u8> {
    match rng.u32(..20) {
        0 => [b"/a/".as_slice(), &vec![b'n'; LONG]].concat(),
        1 => b"/d".repeat(DEEP),
        _ => HOSTILE[rng.usize(..HOSTILE.len())].into(),
    }
}

/// Returns data; `None` is the null buffer.
pub(super) fn data(rng: &mut Rng) -> Option<Vec<u8>> {
    match rng.u32(..100) {
        0..8 => None,
        8..20 => Some(Vec::new()),
        20..97 => Some(format!("data {}", rng.u32(..1_000)).into()),
        97..99 => Some(vec![rng.u8(..); 1_024]),
        _ => Some(vec![rng.u8(..); 20_000]),
    }
}

/// Returns an expected version.
pub(super) fn version(rng: &mut Rng) -> i32 {
    match rng.u32(..20) {
        0..11 => -1,
        11..19 => rng.i32(0..4),
        _ => [-2, i32::MIN, i32::MAX][rng.usize(..3)],
    }
}

/// Returns a client.
pub(super) fn client(rng: &mut Rng) -> ClientNumber {
    rng.usize(..crate::run::CLIENTS)
}

/// Returns a number that is not small.
pub(super) fn odd_int(rng: &mut Rng) -> i32 {
    [-1, -2, 0, 7, 99, 255, 65_536, i32::MIN, i32::MAX, 0x7fff_fff0][rng.usize(..10)]
}

/// Formats a path for reports.
pub(super) fn shown(path: &[u8]) -> String {
    readable(path)
}

//! Bytes that no client library sends: requests with missing, additional or changed bytes, unknown operations, and
//! bytes that are not requests.

use fastrand::Rng;

use super::pick::odd_int;
use crate::script::Call;
use crate::wire::Writer;

/// ZooKeeper's `jute.maxbuffer`: a frame of this length is too long.
const MAX_FRAME: i32 = 0xf_ffff;

const RECONFIG: i32 = 16;

/// The length of a null text or list.
const NULL: i32 = -1;

/// Returns a damaged request.
pub(super) fn damaged(rng: &mut Rng, mut call: Call) -> Call {
    let length = call.body.len();
    match rng.u32(..5) {
        0 => call.body.truncate(rng.usize(..=length)),
        1 => call.body.extend((0..rng.usize(1..9)).map(|_| rng.u8(..))),
        2 if length > 0 => call.body[rng.usize(..length)] = rng.u8(..),
        3 if length >= 4 => {
            // Lengths are more frequent at the start than elsewhere.
            let at = if rng.bool() { 0 } else { rng.usize(..=length - 4) };
            let value = match odd_int(rng) {
                NULL => NULL - 1, // Never a null path, identity or list.
                value => value,
            };
            call.body[at..at + 4].copy_from_slice(&value.to_be_bytes());
        }
        _ => call.body = (0..rng.usize(..40)).map(|_| rng.u8(..)).collect(),
    }
    let hex: String = call.body.iter().take(120).map(|byte| format!("{byte:02x}")).collect();
    call.text = format!("damaged op {} body {hex} (was: {})", call.op, call.text);
    call
}

/// Returns an operation that is internal, belongs to another kind of server, or is unknown.
pub(super) fn unknown(rng: &mut Rng) -> Call {
    const OPS: [i32; 16] = [-2, -1, 0, 10, 13, 16, 23, 24, 99, 108, 200, 1_000, i32::MIN, i32::MAX, -12, -9];
    let op = OPS[rng.usize(..OPS.len())];
    let body = match rng.u32(..3) {
        0 => Vec::new(),
        1 => Writer::default().buffer(Some(b"/a")).int(-1).0,
        _ if op == RECONFIG => {
            Writer::default().buffer(None).buffer(None).buffer(Some(b"server.1=x")).long(-1).0
        }
        _ => (0..rng.usize(..30)).map(|_| rng.u8(..)).collect(),
    };
    let hex: String = body.iter().map(|byte| format!("{byte:02x}")).collect();
    Call::new(op, body, format!("op {op} body {hex}"))
}

/// Returns bytes for a connection with a session that are not a frame, or a frame without a header.
pub(super) fn garbage(rng: &mut Rng) -> Vec<u8> {
    let lengths = [-1, i32::MIN, i32::MAX, MAX_FRAME, MAX_FRAME + 1, 0, 1, 4, 7];
    let length = lengths[rng.usize(..lengths.len())];
    Writer::default().int(length).bytes(&vec![0; rng.usize(..8)]).0
}

/// Returns the first bytes of a connection that are not a connect request. Never only letters: those are commands.
pub(super) fn stranger(rng: &mut Rng) -> Vec<u8> {
    let hello = Writer::default().int(0).long(0).int(60_000).long(0).buffer(Some(&[0; 16])).bool(false).0;
    let length = i32::try_from(hello.len()).expect("45 bytes");
    match rng.u32(..7) {
        0 => garbage(rng),
        1 => Writer::default().int(length).bytes(&hello[..rng.usize(..hello.len())]).0,
        2 => {
            let cut = rng.usize(..hello.len() - 1);
            let length = i32::try_from(cut).expect("below 45");
            Writer::default().int(length).bytes(&hello[..cut]).0
        }
        3 => {
            let hello =
                Writer::default().int(0).long(0).int(60_000).long(0).int(odd_int(rng)).bytes(&[0; 16]).0;
            Writer::default().int(length - 1).bytes(&hello).0
        }
        4 => Vec::new(),
        5 => vec![0; rng.usize(1..4)],
        _ => (0..rng.usize(1..60)).map(|_| rng.u8(128..)).collect(),
    }
}

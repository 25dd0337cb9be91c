//! Requests as bytes, encoded once per znode so that a measured loop only copies them.

/// All permissions for world:anyone.
const OPEN_ACL: &[u8] = b"\0\0\0\x01\0\0\0\x1f\0\0\0\x05world\0\0\0\x06anyone";
/// Servers echo the xid and accept repeated ones.
const XID: i32 = 1;

const CREATE: i32 = 1;
const DELETE: i32 = 2;
const GET_DATA: i32 = 4;
const SET_DATA: i32 = 5;
const MULTI: i32 = 14;
const MULTI_READ: i32 = 22;
const ADD_WATCH: i32 = 106;
const ANY_VERSION: i32 = -1;
const RECURSIVE: i32 = 1;
/// The start of a reply's body, after xid, zxid and error.
const BODY: usize = 16;

pub(crate) fn connect(timeout_ms: i32) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend(0_i32.to_be_bytes());
    body.extend(0_i64.to_be_bytes());
    body.extend(timeout_ms.to_be_bytes());
    body.extend(0_i64.to_be_bytes());
    text(&mut body, &[0; 16]);
    body.push(0);
    framed(&body)
}

pub(crate) fn create(path: &str, data: &[u8]) -> Vec<u8> {
    request(CREATE, &create_body(path, data))
}

pub(crate) fn delete(path: &str) -> Vec<u8> {
    request(DELETE, &delete_body(path))
}

pub(crate) fn set_data(path: &str, data: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    text(&mut body, path.as_bytes());
    text(&mut body, data);
    body.extend(ANY_VERSION.to_be_bytes());
    request(SET_DATA, &body)
}

pub(crate) fn get_data(path: &str) -> Vec<u8> {
    request(GET_DATA, &get_body(path))
}

pub(crate) fn watch_recursively(path: &str) -> Vec<u8> {
    let mut body = Vec::new();
    text(&mut body, path.as_bytes());
    body.extend(RECURSIVE.to_be_bytes());
    request(ADD_WATCH, &body)
}

pub(crate) fn multi_create(paths: &[String], data: &[u8]) -> Vec<u8> {
    multi(MULTI, CREATE, paths.iter().map(|path| create_body(path, data)))
}

pub(crate) fn multi_delete(paths: &[String]) -> Vec<u8> {
    multi(MULTI, DELETE, paths.iter().map(|path| delete_body(path)))
}

pub(crate) fn multi_get(paths: &[String]) -> Vec<u8> {
    multi(MULTI_READ, GET_DATA, paths.iter().map(|path| get_body(path)))
}

/// Returns the xid of a reply, or −1 for a notification.
pub(crate) fn xid(frame: &[u8]) -> Option<i32> {
    number(frame, 0)
}

/// Returns whether a reply reports success. The header of a multi does so even if the multi failed.
pub(crate) fn succeeded(frame: &[u8], multi: bool) -> bool {
    let header = number(frame, 12) == Some(0);
    let first = number(frame, BODY);
    header && (!multi || first.is_some_and(|code| code > 0))
}

fn number(frame: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_be_bytes(frame.get(at..at + 4)?.try_into().ok()?))
}

fn multi(code: i32, op: i32, bodies: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut all = Vec::new();
    for body in bodies {
        multi_header(&mut all, op, false);
        all.extend(body);
    }
    multi_header(&mut all, -1, true);
    request(code, &all)
}

fn multi_header(to: &mut Vec<u8>, op: i32, last: bool) {
    to.extend(op.to_be_bytes());
    to.push(u8::from(last));
    to.extend((-1_i32).to_be_bytes());
}

fn create_body(path: &str, data: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    text(&mut body, path.as_bytes());
    text(&mut body, data);
    body.extend(OPEN_ACL);
    body.extend(0_i32.to_be_bytes());
    body
}

fn delete_body(path: &str) -> Vec<u8> {
    let mut body = Vec::new();
    text(&mut body, path.as_bytes());
    body.extend(ANY_VERSION.to_be_bytes());
    body
}

fn get_body(path: &str) -> Vec<u8> {
    let mut body = Vec::new();
    text(&mut body, path.as_bytes());
    body.push(0);
    body
}

fn request(code: i32, body: &[u8]) -> Vec<u8> {
    framed(&[&XID.to_be_bytes(), &code.to_be_bytes(), body].concat())
}

fn framed(body: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(body.len() + 4);
    text(&mut frame, body);
    frame
}

fn text(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend(u32::try_from(bytes.len()).expect("requests are short").to_be_bytes());
    to.extend(bytes);
}

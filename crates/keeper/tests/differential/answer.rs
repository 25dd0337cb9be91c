//! Formats replies as lines of text with all their bytes. Only values that must differ between two servers are
//! normalised.
//!
//! | on the wire | in the line |
//! | --- | --- |
//! | session ids | numbered in the order of their first use |
//! | passwords | whether the password of the session is unchanged |
//! | times | whether a transaction has the same time everywhere, and whether that is the current time |
//! | names of children, identities, ACL entries of equal permissions | sorted: Java returns them in hash order |
//!
//! Bytes that cannot be parsed, and trailing bytes, are shown as bytes.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::wire::{Reader, readable};

/// The allowed difference between a time and the current time: the length of a run on a slow machine.
const NOW_WITHIN_MS: i64 = 300_000;

/// The values seen on one server in a run, to recognise them later.
#[derive(Debug, Default)]
pub(crate) struct Met {
    sessions: Vec<(i64, Vec<u8>)>,
    times: BTreeMap<i64, i64>,
}

/// The reply to a first frame.
#[derive(Debug)]
pub(crate) struct Granted {
    pub(crate) session: i64,
    pub(crate) password: Vec<u8>,
    pub(crate) timeout_ms: i32,
}

impl Met {
    /// Formats a connect response; also returns the granted session.
    pub(crate) fn connected(&mut self, frame: &[u8]) -> (String, Option<Granted>) {
        let mut reader = Reader(frame);
        let parsed = (|| {
            let version = reader.int()?;
            let timeout_ms = reader.int()?;
            let session = reader.long()?;
            let password = reader.buffer()?.unwrap_or_default().to_vec();
            Some((version, Granted { session, password, timeout_ms }))
        })();
        let Some((version, granted)) = parsed else {
            return (format!("invalid connect response: {}", readable(frame)), None);
        };
        let password = match self.sessions.iter_mut().find(|(id, _)| *id == granted.session) {
            _ if granted.password.iter().all(|byte| *byte == 0) => {
                format!("{} zeros", granted.password.len())
            }
            Some((_, known)) if known.is_empty() => {
                known.clone_from(&granted.password);
                format!("new, {} bytes", granted.password.len())
            }
            Some((_, known)) if *known == granted.password => "as before".to_owned(),
            Some(_) => "changed".to_owned(),
            None => {
                self.sessions.push((granted.session, granted.password.clone()));
                format!("new, {} bytes", granted.password.len())
            }
        };
        let line = format!(
            "connected: version {version}, timeout {}, session {}, password {password}, rest {}",
            granted.timeout_ms,
            self.session(granted.session),
            readable(reader.0)
        );
        (line, Some(granted))
    }

    /// Formats a notification without its header.
    pub(crate) fn event(&mut self, zxid: i64, code: i32, body: &[u8]) -> String {
        let mut reader = Reader(body);
        let parsed = (|| {
            let (kind, state) = (reader.int()?, reader.int()?);
            let path = text(reader.buffer()?);
            Some(format!("kind {kind} state {state} path {path}"))
        })();
        let body = whole(parsed, &reader, body);
        format!("event: zxid {zxid} err {code} {body}")
    }

    /// Formats the body of a reply.
    pub(crate) fn body(&mut self, op: i32, body: &[u8]) -> String {
        let mut reader = Reader(body);
        if body.is_empty() {
            return "no body".to_owned();
        }
        let parsed = self.parse(op, &mut reader);
        whole(parsed, &reader, body)
    }

    fn parse(&mut self, op: i32, reader: &mut Reader<'_>) -> Option<String> {
        match op {
            1 | 9 => Some(format!("path {}", text(reader.buffer()?))),
            15 | 19 | 21 => Some(format!("path {} {}", text(reader.buffer()?), self.stat(reader)?)),
            3 | 5 | 7 => self.stat(reader),
            4 => Some(format!("data {} {}", text(reader.buffer()?), self.stat(reader)?)),
            6 => Some(format!("acl {} {}", acl(reader)?, self.stat(reader)?)),
            8 | 103 => Some(format!("names {}", names(reader)?)),
            12 => Some(format!("names {} {}", names(reader)?, self.stat(reader)?)),
            14 | 22 => self.results(reader),
            104 => Some(format!("count {}", reader.int()?)),
            106 => Some(format!("error {}", reader.int()?)),
            107 => identities(reader),
            _ => Some(String::new()), // The whole body is shown as bytes.
        }
    }

    fn results(&mut self, reader: &mut Reader<'_>) -> Option<String> {
        let mut results = Vec::new();
        loop {
            let (op, done, code) = (reader.int()?, reader.bool()?, reader.int()?);
            let result = match op {
                _ if done != 0 => String::new(),
                1 => text(reader.buffer()?),
                15 => format!("{} {}", text(reader.buffer()?), self.stat(reader)?),
                5 => self.stat(reader)?,
                4 => format!("{} {}", text(reader.buffer()?), self.stat(reader)?),
                8 => names(reader)?,
                -1 => reader.int()?.to_string(),
                _ => String::new(), // Deletions and checks have no body; others are not parsed further.
            };
            results.push(format!("<op {op} done {done} err {code} {result}>"));
            if done != 0 {
                return Some(results.join(" "));
            }
        }
    }

    fn stat(&mut self, reader: &mut Reader<'_>) -> Option<String> {
        let (czxid, mzxid) = (reader.long()?, reader.long()?);
        let (ctime, mtime) = (reader.long()?, reader.long()?);
        let (version, cversion, aversion) = (reader.int()?, reader.int()?, reader.int()?);
        let owner = reader.long()?;
        let (length, children) = (reader.int()?, reader.int()?);
        let pzxid = reader.long()?;
        let (ctime, mtime) = (self.time(czxid, ctime), self.time(mzxid, mtime));
        let owner = self.session(owner);
        Some(format!(
            "stat(czxid {czxid} mzxid {mzxid} pzxid {pzxid} ctime {ctime} mtime {mtime} v {version} cv {cversion} \
             av {aversion} owner {owner} length {length} children {children})"
        ))
    }

    /// A transaction has one time, the current time. A znode that no transaction created has time 0.
    fn time(&mut self, zxid: i64, time: i64) -> String {
        if zxid == 0 {
            return time.to_string();
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
        let off = i64::try_from(now).expect("milliseconds fit an i64").saturating_sub(time);
        match self.times.insert(zxid, time) {
            Some(known) if known != time => format!("{} ms off its transaction", time.wrapping_sub(known)),
            Some(_) | None if off.saturating_abs() > NOW_WITHIN_MS => format!("{off} ms ago"),
            Some(_) | None => "its own".to_owned(),
        }
    }

    fn session(&mut self, id: i64) -> String {
        // 0 means no session. Negative numbers are markers of containers and TTLs.
        if id <= 0 {
            return format!("{id:#x}");
        }
        let known = self.sessions.iter().position(|(known, _)| *known == id);
        let number = known.unwrap_or_else(|| {
            self.sessions.push((id, Vec::new()));
            self.sessions.len() - 1
        });
        format!("#{number}")
    }
}

/// Returns the parsed text with trailing bytes, or all bytes if nothing could be parsed.
fn whole(parsed: Option<String>, reader: &Reader<'_>, body: &[u8]) -> String {
    match parsed {
        None => format!("unparsed {}", readable(body)),
        Some(text) if reader.0.is_empty() => text,
        Some(text) => format!("{text} and then {}", readable(reader.0)),
    }
}

fn text(buffer: Option<&[u8]>) -> String {
    buffer.map_or_else(|| "null".to_owned(), readable)
}

/// Reads a vector; a null vector is the inner `None`.
fn vector<T>(
    reader: &mut Reader<'_>,
    mut element: impl FnMut(&mut Reader<'_>) -> Option<T>,
) -> Option<Option<Vec<T>>> {
    match reader.int()? {
        -1 => Some(None),
        count => (0..count).map(|_| element(reader)).collect::<Option<Vec<T>>>().map(Some),
    }
}

fn names(reader: &mut Reader<'_>) -> Option<String> {
    let names = vector(reader, |reader| reader.buffer().map(text))?;
    Some(names.map_or_else(
        || "null".to_owned(),
        |mut names| {
            names.sort();
            format!("[{}]", names.join(", "))
        },
    ))
}

fn identities(reader: &mut Reader<'_>) -> Option<String> {
    let identities =
        vector(reader, |reader| Some(format!("{}:{}", text(reader.buffer()?), text(reader.buffer()?))))?;
    Some(identities.map_or_else(
        || "null".to_owned(),
        |mut identities| {
            identities.sort();
            format!("identities [{}]", identities.join(", "))
        },
    ))
}

fn acl(reader: &mut Reader<'_>) -> Option<String> {
    let entries =
        vector(reader, |reader| Some((reader.int()?, text(reader.buffer()?), text(reader.buffer()?))))?;
    let Some(mut entries) = entries else { return Some("null".to_owned()) };
    // `auth` is replaced by all identities of a connection, in hash order and with the same permissions.
    entries.chunk_by_mut(|one, other| one.0 == other.0).for_each(<[_]>::sort);
    let entries: Vec<String> =
        entries.iter().map(|(permissions, scheme, id)| format!("{permissions} {scheme} {id}")).collect();
    Some(format!("[{}]", entries.join(", ")))
}

//! Parsers for argument values.

use std::io::Read;
use std::time::Duration;

use bellwether::{DurationText, TraceContext};

use super::exit::Failure;

/// Parses a duration such as `10s`, `500ms`, `2m`, `1h` or `1d`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    text.parse::<DurationText>().map(Duration::from).map_err(|error| error.to_string())
}

/// Parses a time limit of a server.
pub(crate) fn time_limit(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    let allowed = Duration::from_millis(1)..=Duration::from_secs(3600);
    if allowed.contains(&time) { Ok(time) } else { Err("must be 1ms to 1h".to_owned()) }
}

/// Limit of bytes that are read. It is above the client's limit, so that the client's error can name the size.
const READ_AT_MOST: u64 = 16 * 1024 * 1024;

/// Reads a payload that is given as text, as `@FILE`, or as `-` for stdin.
pub(crate) fn payload(payload: &str) -> Result<Vec<u8>, Failure> {
    match (payload, payload.strip_prefix('@')) {
        ("-", _) => read("stdin", std::io::stdin().lock()),
        (_, Some(file)) => {
            let opened = std::fs::File::open(file);
            read(file, opened.map_err(|error| Failure::usage(format!("cannot open {file}: {error}")))?)
        }
        (text, None) => Ok(text.as_bytes().to_vec()),
    }
}

/// Returns the trace in the environment. An invalid TRACEPARENT is ignored, as W3C Trace Context requires.
pub(crate) fn traceparent() -> Option<TraceContext> {
    std::env::var("TRACEPARENT").ok()?.parse().ok()
}

fn read(name: &str, from: impl Read) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    from.take(READ_AT_MOST)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
    Ok(bytes)
}

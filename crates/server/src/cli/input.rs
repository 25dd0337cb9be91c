//! Parsers for argument values.

use std::io::Read;
use std::time::Duration;

use bellwether::{Job, TraceContext};

use super::exit::Failure;
use bellwether_documents::{DurationText, Text};

/// Parses a duration such as `10s`, `500ms`, `2m`, `1h` or `1d`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    text.parse::<DurationText>().map(|Text(duration)| duration)
}

/// Parses a time limit of a server.
pub(crate) fn time_limit(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    let allowed = Duration::from_millis(1)..=Duration::from_secs(3600);
    if allowed.contains(&time) { Ok(time) } else { Err("must be 1ms to 1h".to_owned()) }
}

/// Limit of bytes that are read. It is above the client's limit, so that the client's error can name the size.
const READ_AT_MOST: u64 = 16 * 1024 * 1024;

/// Creates a job whose payload is given as text, as `@FILE`, or as `-` for stdin.
pub(crate) fn job(kind: &str, payload: &str, content_type: &str) -> Result<Job, Failure> {
    let bytes = match (payload, payload.strip_prefix('@')) {
        ("-", _) => read("stdin", std::io::stdin().lock())?,
        (_, Some(file)) => {
            let opened = std::fs::File::open(file);
            read(file, opened.map_err(|error| Failure::usage(format!("cannot open {file}: {error}")))?)?
        }
        (text, None) => text.as_bytes().to_vec(),
    };
    let job = if content_type == "application/json" {
        let text = String::from_utf8(bytes)
            .map_err(|error| Failure::usage(format!("payload is not JSON: {error}")))?;
        Job::json(kind, text)
    } else {
        Job::raw(kind, content_type, bytes)
    };
    job.check().map_err(|error| Failure::usage(error.to_string()))?;
    Ok(job)
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

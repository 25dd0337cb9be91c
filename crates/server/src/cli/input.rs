//! Parsers for argument values.

use std::io::Read;
use std::time::{Duration, SystemTime};

use bellwether::Job;

use super::exit::Failure;

/// Limit of bytes that are read. It is above the client's limit, so that the client's error can name the size.
const READ_AT_MOST: u64 = 16 * 1024 * 1024;

/// Parses a duration such as `10s`, `500ms`, `2m`, `1h` or `1d`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let refused =
        || format!("{text:?} is not a duration: give a number and a unit, such as 10s, 500ms, 2m or 1h");
    let unit = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(refused)?;
    let (number, unit) = text.split_at(unit);
    let number = number.parse::<u64>().map_err(|_| refused())?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(refused()),
    };
    number.checked_mul(millis).map(Duration::from_millis).ok_or_else(refused)
}

/// Parses an instant in RFC 3339 with an offset: `2026-11-21T11:33:00Z`, `2026-11-21T12:33:00+01:00`.
pub(crate) fn instant(text: &str) -> Result<SystemTime, String> {
    let at = text.parse::<jiff::Timestamp>().map_err(|_| {
        format!("{text:?} is not an instant: give date, time and offset, such as 2026-11-21T11:33:00Z")
    })?;
    Ok(at.into())
}

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
    job.map_err(|error| Failure::usage(error.to_string()))
}

fn read(name: &str, from: impl Read) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    from.take(READ_AT_MOST)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn an_instant_has_an_offset() {
        let noon = UNIX_EPOCH + Duration::from_secs(12 * 3600);
        for text in ["1970-01-01T12:00:00Z", "1970-01-01T13:00:00+01:00", "1970-01-01T12:00:00.000Z"] {
            assert_eq!(instant(text), Ok(noon), "{text}");
        }
        for refused in ["", "now", "12:00", "1970-01-01", "1970-01-01T12:00:00", "1970-02-30T12:00:00Z"] {
            assert!(instant(refused).unwrap_err().contains("such as 2026"), "{refused}");
        }
    }

    #[test]
    fn a_duration_is_a_number_and_a_unit() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        for refused in
            ["", "10", "s", "-1s", "1.5s", "10 s", "10sec", "99999999999999999999s", "18446744073709551615d"]
        {
            assert!(duration(refused).unwrap_err().contains("such as 10s"), "{refused}");
        }
    }
}

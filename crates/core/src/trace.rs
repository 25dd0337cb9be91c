//! The trace context of a job: a traceparent of W3C Trace Context, version 00.
//!
//! It has two ids and a flag, and so a fixed size. The tracestate is not stored: it has up to 512 bytes that only its
//! vendor reads, and every waiting job would carry it (docs/adr/0020-trace-context.md).

use std::fmt;
use std::str::FromStr;

/// The defined flags: sampled, and random trace id. All others must be zero.
const FLAGS: u8 = 0b11;

const SAMPLED: u8 = 0b01;

/// The length of version 00: `00-{32}-{16}-{2}`.
const LENGTH: usize = 55;

/// A trace, and the span in which a job was submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceContext {
    trace: [u8; 16],
    span: [u8; 8],
    flags: u8,
}

/// Why a text or bytes are not a trace context.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceContextError {
    /// The text has another form.
    #[error(
        "traceparent {0:?} is not 00-TRACE-SPAN-FLAGS of 32, 16 and 2 lower-case hexadecimal digits, as W3C Trace Context requires"
    )]
    Form(String),
    /// An id is all zeros, which W3C Trace Context defines as invalid.
    #[error("the {0} id of a trace context must not be zero")]
    Zero(&'static str),
    /// A stored flag is not defined.
    #[error("trace flags {0:#04x}: at most 0x03 is allowed")]
    Flags(u8),
}

impl TraceContext {
    /// Creates a context. Undefined flags are dropped.
    ///
    /// # Errors
    /// An id is zero.
    pub fn new(trace: [u8; 16], span: [u8; 8], flags: u8) -> Result<Self, TraceContextError> {
        match (trace == [0; 16], span == [0; 8]) {
            (true, _) => Err(TraceContextError::Zero("trace")),
            (false, true) => Err(TraceContextError::Zero("span")),
            (false, false) => Ok(Self { trace, span, flags: flags & FLAGS }),
        }
    }

    /// As [`TraceContext::new`], for stored parts: undefined flags are an error.
    pub(crate) fn stored(trace: [u8; 16], span: [u8; 8], flags: u8) -> Result<Self, TraceContextError> {
        if flags & !FLAGS != 0 {
            return Err(TraceContextError::Flags(flags));
        }
        Self::new(trace, span, flags)
    }

    /// The trace id.
    #[must_use]
    pub fn trace(&self) -> [u8; 16] {
        self.trace
    }

    /// The span id.
    #[must_use]
    pub fn span(&self) -> [u8; 8] {
        self.span
    }

    /// The flags as in the traceparent.
    #[must_use]
    pub fn flags(&self) -> u8 {
        self.flags
    }

    /// Whether the caller that started the trace records it.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The trace id in the form that tracing tools show.
    #[must_use]
    pub fn trace_id(&self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.trace))
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (trace, span) = (u128::from_be_bytes(self.trace), u64::from_be_bytes(self.span));
        write!(f, "00-{trace:032x}-{span:016x}-{:02x}", self.flags)
    }
}

impl FromStr for TraceContext {
    type Err = TraceContextError;

    /// Reads a later version as version 00, as W3C Trace Context requires.
    fn from_str(text: &str) -> Result<Self, TraceContextError> {
        let form = || TraceContextError::Form(text.chars().take(LENGTH).collect());
        let bytes = text.as_bytes();
        let rest = bytes.get(LENGTH..).ok_or_else(form)?;
        let [version] = hex(&bytes[..2]).ok_or_else(form)?;
        let dashes = [2, 35, 52].into_iter().all(|at| bytes[at] == b'-');
        let known = match version {
            0 => rest.is_empty(),
            0xff => false,
            _ => rest.is_empty() || rest[0] == b'-',
        };
        if !dashes || !known {
            return Err(form());
        }
        let trace = hex(&bytes[3..35]).ok_or_else(form)?;
        let span = hex(&bytes[36..52]).ok_or_else(form)?;
        let [flags] = hex(&bytes[53..LENGTH]).ok_or_else(form)?;
        Self::new(trace, span, flags)
    }
}

/// Accepts lower case only, as W3C Trace Context requires.
fn hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = value(pair[0])? * 16 + value(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_traceparent_survives_a_round_trip() {
        let context = TEXT.parse::<TraceContext>().unwrap();
        assert_eq!(context.to_string(), TEXT);
        assert_eq!(context.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert!(context.is_sampled());
        assert!(!TEXT.replace("-01", "-00").parse::<TraceContext>().unwrap().is_sampled());
    }

    #[test]
    fn undefined_flags_are_dropped_from_input_and_refused_when_stored() {
        let context = TEXT.replace("-01", "-ff").parse::<TraceContext>().unwrap();
        assert_eq!(context.flags(), 3);
        let stored = TraceContext::stored(context.trace(), context.span(), 4);
        assert_eq!(stored.unwrap_err().to_string(), "trace flags 0x04: at most 0x03 is allowed");
    }

    #[test]
    fn a_later_version_is_read_as_version_00() {
        let read = TEXT.parse::<TraceContext>();
        for later in ["01", "cc", "fe"] {
            let later = format!("{later}{}", &TEXT[2..]);
            assert_eq!(later.parse(), read);
            assert_eq!(format!("{later}-what-comes").parse(), read);
            format!("{later}what-comes").parse::<TraceContext>().unwrap_err();
        }
    }

    #[test]
    fn an_invalid_traceparent_is_refused_and_a_zero_id_is_named() {
        for wrong in [
            "",
            "00",
            &TEXT[..54],
            &format!("{TEXT}-"),
            &format!("{TEXT}0"),
            &TEXT.replacen("00", "ff", 1),
            &TEXT.replace('b', "B"),
            &TEXT.replace('b', "g"),
            &TEXT.replacen('-', "_", 1),
            &format!("{}é", &TEXT[..54]),
            &TEXT.replace("-01", "-+1"),
        ] {
            assert!(matches!(wrong.parse::<TraceContext>(), Err(TraceContextError::Form(_))), "{wrong}");
        }
        let zero = TEXT.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32));
        assert_eq!(zero.parse::<TraceContext>(), Err(TraceContextError::Zero("trace")));
        let zero = TEXT.replace("00f067aa0ba902b7", &"0".repeat(16));
        assert_eq!(zero.parse::<TraceContext>(), Err(TraceContextError::Zero("span")));
    }

    #[test]
    fn an_error_repeats_only_the_start_of_a_long_input() {
        let error = "x".repeat(100_000).parse::<TraceContext>().unwrap_err().to_string();
        assert!(error.len() < 250, "{error}");
    }

    proptest! {
        #[test]
        fn any_text_is_refused_or_survives_a_round_trip(text in "[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?|.{0,80}") {
            if let Ok(context) = text.parse::<TraceContext>() {
                prop_assert_eq!(context.to_string().parse(), Ok(context));
            }
        }
    }
}

//! Checks the nesting of JSON, without recursion.

use crate::limits::MAX_DEPTH;
use crate::problem::{Fault, Problem};

/// Rejects JSON text that is nested too deeply for any handler to parse. The text is known to be valid JSON.
pub(crate) fn shallow(field: &str, json: &str) -> Result<(), Problem> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in json.bytes() {
        match (byte, in_string) {
            _ if escaped => escaped = false,
            (b'\\', true) => escaped = true,
            (b'"', _) => in_string = !in_string,
            (b'[' | b'{', false) => depth += 1,
            (b']' | b'}', false) => depth = depth.saturating_sub(1),
            (_, _) => {}
        }
        if depth > MAX_DEPTH {
            return Err(Fault::Invalid.because(format!("{field} nests deeper than {MAX_DEPTH}: flatten it")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_brackets_outside_of_strings_count() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        shallow("payload", &nested(MAX_DEPTH)).unwrap();
        shallow("payload", &nested(MAX_DEPTH + 1)).unwrap_err();
        shallow("payload", &format!(r#""\"{}""#, "[".repeat(1_000))).unwrap();
        shallow("payload", &format!(r#"["\\", {}]"#, nested(MAX_DEPTH))).unwrap_err();
        shallow("payload", &vec!["[]"; 1_000].join(",")).unwrap();
    }
}

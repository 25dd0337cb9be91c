//! Fuzz targets of the command line. See `src/fuzz.rs` for how they run, and for the other targets.

use clap::Parser as _;

use super::output::printable;
use super::{Arguments, Command, input, job, schedule};

/// Parses arguments, one per line: they are accepted, or rejected with a readable error. Nothing is run.
pub fn command_line(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    duration(text.lines().next().unwrap_or_default());
    assert!(printable(text).chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    match Arguments::try_parse_from(std::iter::once("bellwether").chain(text.lines())) {
        Ok(Arguments { command: Command::Job(job), .. }) => job::fuzzed(job),
        Ok(Arguments { command: Command::Schedule(command), .. }) => schedule::fuzzed(command),
        Ok(_other) => {}
        Err(refused) => assert!(!refused.render().to_string().is_empty()),
    }
}

/// An accepted duration equals its number times its unit.
fn duration(text: &str) {
    let Ok(read) = input::duration(text) else { return };
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = text[..text.len() - unit.len()].parse::<u128>().expect("digits");
    let millis = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
    let millis = millis.iter().find(|(name, _)| *name == unit).expect("a unit").1;
    assert_eq!(read.as_millis(), number * millis, "{text}");
}

#[cfg(test)]
mod tests {
    use bellwether_testkit::fuzz::Corpus;

    /// Each mutant builds the whole command line, which takes a millisecond in a debug build.
    const MUTANTS: usize = 1_000;

    #[test]
    fn any_command_line_is_accepted_or_rejected() {
        let words: [&[u8]; 10] = [
            b"\n",
            b"-",
            b"--",
            b"--timeout",
            b"\n--count\n",
            b"=",
            b"10s",
            b"\0",
            b"@",
            "\u{1b}[2J".as_bytes(),
        ];
        let corpus = Corpus::read(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus"), "command_line");
        corpus.exercise(MUTANTS, &words, super::command_line);
    }
}

//! What is fuzzed of the command: see `src/fuzz.rs` for how, and for the rest.

use clap::Parser as _;

use super::output::printable;
use super::{Arguments, Command, input, job, schedule};

/// Arguments, one to a line: they are understood, or refused in a text for people. Nothing is run.
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

/// What is understood as a duration is that number of its unit.
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

    /// Each builds the whole command line anew, which takes a millisecond of a debug build.
    const MUTANTS: usize = 1_000;

    #[test]
    fn any_command_line_is_understood_or_refused() {
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

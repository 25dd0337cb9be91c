//! Fuzz targets of the command line. See `src/fuzz.rs` for how they run, and for the other targets.

use std::cell::RefCell;

use clap::{CommandFactory as _, FromArgMatches as _};

pub use super::config::fuzzed as configuration;
use super::output::printable;
use super::{Arguments, Command, input, job, schedule};

/// Parses arguments, one per line: they are accepted, or rejected with a readable error. Nothing is run.
pub fn command_line(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    duration(text.lines().next().unwrap_or_default());
    assert!(printable(text).chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    // Built once, because that takes longer than parsing.
    thread_local!(static COMMAND: RefCell<clap::Command> = RefCell::new(Arguments::command()));
    let words = std::iter::once("bellwether").chain(text.lines());
    let matches = COMMAND.with_borrow_mut(|command| command.try_get_matches_from_mut(words));
    match matches.and_then(|matches| Arguments::from_arg_matches(&matches)) {
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
    use bellwether_testkit::fuzz::{Corpus, MUTANTS};

    #[test]
    fn any_command_line_is_accepted_or_rejected() {
        let words: [&[u8]; 10] = [
            b"\n",
            b"-",
            b"--",
            b"--deadline",
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

    #[test]
    fn any_configuration_file_is_accepted_or_refused_with_its_line() {
        let words: [&[u8]; 12] = [
            b"\n",
            b"[node]\n",
            b"[[schedule]]\n",
            b"job = {",
            b"=",
            b"\"",
            b"\"10s\"",
            b"[",
            b"]",
            b"\\u0000",
            b"1e400",
            b"2100-01-01T00:00:00Z",
        ];
        let corpus = Corpus::read(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus"), "configuration");
        corpus.exercise(MUTANTS, &words, super::configuration);
    }
}

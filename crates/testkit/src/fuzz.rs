//! Fuzz targets without a fuzzer: the corpus is replayed, then mutated a bounded number of times.
//!
//! A target is a function that accepts any bytes. It must not panic, and asserts its other guarantees. It has two
//! drivers: libFuzzer, run manually, in a `fuzz` folder with the corpus; and a test, which passes that corpus to
//! [`Corpus`] in every test run. To keep a finding of libFuzzer, add it to the corpus.
//!
//! `BELLWETHER_FUZZ_SEED=17` repeats a run.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

use fastrand::Rng;

const SEED: &str = "BELLWETHER_FUZZ_SEED";

/// Limit of changes per input: with more of them the input is mostly noise, which the first check of a target rejects.
const MOST_CHANGES: usize = 5;

/// Mutants of a target whose run takes about 0.1 ms: half a second in a debug build.
pub const MUTANTS: usize = 5_000;

/// Words for targets that read JSON: its delimiters, and values that parsers treat differently.
pub const JSON: [&[u8]; 12] = [
    b"\0",
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"\\u0000",
    b"\\ud800",
    b"1e400",
    b"-0",
    b"9223372036854775808",
    b"null",
];

/// The inputs of one target.
#[derive(Debug)]
pub struct Corpus {
    target: String,
    inputs: Vec<Vec<u8>>,
}

impl Corpus {
    /// Reads every file of `{dir}/{target}`.
    ///
    /// # Panics
    /// If the folder cannot be read or is empty: a missing corpus must not pass.
    #[must_use]
    pub fn read(dir: impl AsRef<Path>, target: &str) -> Self {
        let dir = dir.as_ref().join(target);
        let entries = fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
        let mut files: Vec<_> =
            entries.map(|entry| entry.expect("the directory can be read").path()).collect();
        files.sort();
        assert!(!files.is_empty(), "{} is empty", dir.display());
        let inputs =
            files.iter().map(|file| fs::read(file).expect("a file of the corpus can be read")).collect();
        Self { target: target.to_owned(), inputs }
    }

    /// Returns the inputs, in the order of their file names.
    #[must_use]
    pub fn inputs(&self) -> &[Vec<u8>] {
        &self.inputs
    }

    /// Runs the target on every input, then on `mutants` mutations of them. `words` are values that random bytes rarely
    /// produce: invalid lengths, delimiters, reserved names.
    ///
    /// # Panics
    /// Panics as the target does, after printing the input and the seed.
    pub fn exercise(&self, mutants: usize, words: &[&[u8]], run: impl Fn(&[u8])) {
        let target = &self.target;
        let seed = match std::env::var(SEED) {
            Ok(seed) => seed.parse().unwrap_or_else(|error| panic!("{SEED}={seed}: {error}")),
            Err(_unset) => fastrand::u64(..),
        };
        eprintln!("{target}: {} inputs, {mutants} mutants, {SEED}={seed}", self.inputs.len());
        let mut rng = Rng::with_seed(seed);
        let mutants = (0..mutants).map(|_| self.mutated(&mut rng, words));
        for input in self.inputs.iter().cloned().chain(mutants) {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(&input))) {
                eprintln!("{target} failed on \"{}\", {SEED}={seed}", input.escape_ascii());
                resume_unwind(panic);
            }
        }
    }

    /// Returns one input with a few bytes changed, removed, inserted, or replaced by bytes of another input.
    fn mutated(&self, rng: &mut Rng, words: &[&[u8]]) -> Vec<u8> {
        let mut bytes = self.inputs[rng.usize(..self.inputs.len())].clone();
        for _ in 0..rng.usize(1..MOST_CHANGES) {
            let at = rng.usize(..=bytes.len());
            match rng.u32(..7) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, rng.u8(..)),
                2 if at < bytes.len() => bytes[at] = rng.u8(..),
                // Overwrites bytes, so that the following ones keep their offsets.
                3 if !words.is_empty() => {
                    let word = words[rng.usize(..words.len())];
                    let end = bytes.len().min(at + word.len());
                    bytes.splice(at..end, word.iter().copied());
                }
                4 if !words.is_empty() => {
                    let word = words[rng.usize(..words.len())];
                    bytes.splice(at..at, word.iter().copied());
                }
                5 => {
                    let other = &self.inputs[rng.usize(..self.inputs.len())];
                    let from = rng.usize(..=other.len());
                    bytes.splice(at.., other[from..].iter().copied());
                }
                _ if at < bytes.len() => drop(bytes.remove(at)),
                _ => {}
            }
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corpus() -> Corpus {
        Corpus { target: "sample".to_owned(), inputs: vec![b"first".to_vec(), b"second".to_vec()] }
    }

    #[test]
    fn the_same_seed_gives_the_same_mutants_and_another_seed_others() {
        let mutants = |seed| {
            let mut rng = Rng::with_seed(seed);
            (0..50).map(|_| corpus().mutated(&mut rng, &[b"word"])).collect::<Vec<_>>()
        };
        assert_eq!(mutants(1), mutants(1));
        assert_ne!(mutants(1), mutants(2));
        assert!(mutants(1).iter().any(|mutant| mutant.windows(4).any(|bytes| bytes == b"word")));
    }

    #[test]
    fn a_target_runs_on_the_corpus_first_and_its_panic_is_propagated() {
        let seen = std::cell::RefCell::new(Vec::new());
        corpus().exercise(3, &[], |input| seen.borrow_mut().push(input.to_vec()));
        assert_eq!(seen.borrow()[..2], corpus().inputs);
        assert_eq!(seen.borrow().len(), 5);
        let failed = catch_unwind(|| corpus().exercise(0, &[], |input| assert_ne!(input, b"second")));
        assert!(failed.is_err());
    }
}

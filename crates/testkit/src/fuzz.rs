//! A fuzzer's targets without a fuzzer: a corpus as it is, and then mutated for a bounded number of times.
//!
//! A target is a function of any bytes. It must not panic, and it asserts what else it promises. Two drivers share it:
//! libFuzzer, by hand, in a `fuzz` folder with its corpus; and an ordinary test, which hands that corpus to [`Corpus`]
//! in every run of the suite. So a find of the real fuzzer is kept by being put into the corpus.
//!
//! `BELLWETHER_FUZZ_SEED=17` repeats a run.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

use fastrand::Rng;

const SEED: &str = "BELLWETHER_FUZZ_SEED";

/// Most changes of one input: more make noise of it, which its first check refuses.
const MOST_CHANGES: usize = 5;

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
    /// When the folder cannot be read or is empty: a corpus that is not found must not pass.
    #[must_use]
    pub fn read(dir: impl AsRef<Path>, target: &str) -> Self {
        let dir = dir.as_ref().join(target);
        let entries = fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
        let mut files: Vec<_> = entries.map(|entry| entry.expect("a directory is read").path()).collect();
        files.sort();
        assert!(!files.is_empty(), "{} is empty", dir.display());
        let inputs = files.iter().map(|file| fs::read(file).expect("a file of the corpus is read")).collect();
        Self { target: target.to_owned(), inputs }
    }

    /// The inputs, in the order of their files' names.
    #[must_use]
    pub fn inputs(&self) -> &[Vec<u8>] {
        &self.inputs
    }

    /// Runs the target over every input, then over `mutants` mutations of them. `words` are what chance does not find:
    /// lengths that lie, delimiters, reserved names.
    ///
    /// # Panics
    /// With the target's own panic, after the input and the seed were printed.
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
                eprintln!("{target} fails over \"{}\", {SEED}={seed}", input.escape_ascii());
                resume_unwind(panic);
            }
        }
    }

    /// One input with a few bytes changed, cut out, doubled, or taken from another.
    fn mutated(&self, rng: &mut Rng, words: &[&[u8]]) -> Vec<u8> {
        let mut bytes = self.inputs[rng.usize(..self.inputs.len())].clone();
        for _ in 0..rng.usize(1..MOST_CHANGES) {
            let at = rng.usize(..=bytes.len());
            match rng.u32(..7) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, rng.u8(..)),
                2 if at < bytes.len() => bytes[at] = rng.u8(..),
                // Over what is there: the rest keeps its place.
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
    fn a_seed_repeats_its_mutants_and_another_makes_others() {
        let mutants = |seed| {
            let mut rng = Rng::with_seed(seed);
            (0..50).map(|_| corpus().mutated(&mut rng, &[b"word"])).collect::<Vec<_>>()
        };
        assert_eq!(mutants(1), mutants(1));
        assert_ne!(mutants(1), mutants(2));
        assert!(mutants(1).iter().any(|mutant| mutant.windows(4).any(|bytes| bytes == b"word")));
    }

    #[test]
    fn a_target_sees_the_corpus_first_and_its_panic_is_told() {
        let seen = std::cell::RefCell::new(Vec::new());
        corpus().exercise(3, &[], |input| seen.borrow_mut().push(input.to_vec()));
        assert_eq!(seen.borrow()[..2], corpus().inputs);
        assert_eq!(seen.borrow().len(), 5);
        let failed = catch_unwind(|| corpus().exercise(0, &[], |input| assert_ne!(input, b"second")));
        assert!(failed.is_err());
    }
}

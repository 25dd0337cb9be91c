//! The fuzzer's targets without a fuzzer: the corpus as it is, and then mutated for a bounded number of times.
//!
//! A find of the real fuzzer goes into the corpus and is kept by this. `KEEPER_FUZZ_SEED=17` repeats a run.

mod targets;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

use fastrand::Rng;

/// Mutations per target: a second or two of a debug build.
const ROUNDS: usize = 20_000;
/// A conversation costs a thousand times a frame.
const CONVERSATIONS: usize = 1_500;

#[test]
fn any_first_frame_is_read_or_refused() {
    exercise("connect", targets::connect, ROUNDS);
}

#[test]
fn any_frame_is_read_or_refused() {
    exercise("request", targets::request, ROUNDS);
}

#[test]
fn any_answer_is_read_or_refused() {
    exercise("answer", targets::answer, ROUNDS);
}

#[test]
fn any_conversation_leaves_the_store_with_what_the_model_holds() {
    exercise("model", targets::model, CONVERSATIONS);
}

fn exercise(target: &str, run: fn(&[u8]), rounds: usize) {
    let corpus = corpus(target);
    let seed = match std::env::var("KEEPER_FUZZ_SEED") {
        Ok(seed) => seed.parse().expect("KEEPER_FUZZ_SEED is a number"),
        Err(_unset) => fastrand::u64(..),
    };
    eprintln!("{target}: {} inputs, {rounds} mutations, KEEPER_FUZZ_SEED={seed}", corpus.len());
    let mut rng = Rng::with_seed(seed);
    let mutants = (0..rounds).map(|_| mutated(&mut rng, &corpus));
    for input in corpus.iter().cloned().chain(mutants) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(&input))) {
            eprintln!("{target} fails over \"{}\"", input.escape_ascii());
            resume_unwind(panic);
        }
    }
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let entries = fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a directory is read").path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", dir.display());
    files.iter().map(|file| fs::read(file).expect("a file of the corpus is read")).collect()
}

/// One input with a few bytes changed, cut out, doubled, or taken from another.
fn mutated(rng: &mut Rng, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = corpus[rng.usize(..corpus.len())].clone();
    for _ in 0..rng.usize(1..5) {
        let at = rng.usize(..=bytes.len());
        match rng.u32(..6) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, rng.u8(..)),
            2 if at < bytes.len() => bytes[at] = rng.u8(..),
            3 if at + 4 <= bytes.len() => {
                let odd = [-1, i32::MIN, i32::MAX, 0, 1, 5, 0x10_0000][rng.usize(..7)];
                bytes[at..at + 4].copy_from_slice(&odd.to_be_bytes());
            }
            4 => {
                let other = &corpus[rng.usize(..corpus.len())];
                let from = rng.usize(..=other.len());
                bytes.splice(at.., other[from..].iter().copied());
            }
            _ if at < bytes.len() => drop(bytes.remove(at)),
            _ => {}
        }
    }
    bytes
}

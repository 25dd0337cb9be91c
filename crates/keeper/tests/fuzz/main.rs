//! Runs the fuzz targets on their corpus and on mutations of it, in every test run.

mod targets;

use bellwether_testkit::fuzz::Corpus;

/// Mutants per target: about two seconds in a debug build.
const MUTANTS: usize = 20_000;
/// A conversation costs a thousand times as much as a frame.
const CONVERSATIONS: usize = 1_500;

/// Invalid and extreme lengths and counts, in wire format.
const WORDS: [&[u8]; 7] = [
    &(-1_i32).to_be_bytes(),
    &i32::MIN.to_be_bytes(),
    &i32::MAX.to_be_bytes(),
    &0_i32.to_be_bytes(),
    &1_i32.to_be_bytes(),
    &5_i32.to_be_bytes(),
    &0x10_0000_i32.to_be_bytes(),
];

#[test]
fn any_first_frame_is_decoded_or_rejected() {
    exercise("connect", targets::connect, MUTANTS);
}

#[test]
fn any_frame_is_decoded_or_rejected() {
    exercise("request", targets::request, MUTANTS);
}

#[test]
fn the_store_equals_the_model_after_any_conversation() {
    exercise("model", targets::model, CONVERSATIONS);
}

fn exercise(target: &str, run: fn(&[u8]), mutants: usize) {
    let corpus = Corpus::read(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus"), target);
    corpus.exercise(mutants, &WORDS, run);
}

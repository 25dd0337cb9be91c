//! The targets over their corpus, in every run of the suite.

mod targets;

use bellwether_testkit::fuzz::Corpus;

/// Mutants per target: a second or two of a debug build.
const MUTANTS: usize = 20_000;
/// A conversation costs a thousand times a frame.
const CONVERSATIONS: usize = 1_500;

/// Lengths and counts that lie, as the protocol spells them.
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
fn any_first_frame_is_read_or_refused() {
    exercise("connect", targets::connect, MUTANTS);
}

#[test]
fn any_frame_is_read_or_refused() {
    exercise("request", targets::request, MUTANTS);
}

#[test]
fn any_answer_is_read_or_refused() {
    exercise("answer", targets::answer, MUTANTS);
}

#[test]
fn any_conversation_leaves_the_store_with_what_the_model_holds() {
    exercise("model", targets::model, CONVERSATIONS);
}

fn exercise(target: &str, run: fn(&[u8]), mutants: usize) {
    let corpus = Corpus::read(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus"), target);
    corpus.exercise(mutants, &WORDS, run);
}

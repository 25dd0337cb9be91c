//! Runs the fuzz targets over their corpus in every run of the test suite.

mod targets;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::Path;

use bellwether_core::wire::{Stored, Types, each_type};
use bellwether_testkit::fuzz::Corpus;

/// Mutants per target: one or two seconds in a debug build.
const MUTANTS: usize = 20_000;

/// Prefixes that bincode writes before a long integer, alone and with a wrong length; the header; option tags.
const BYTES: [&[u8]; 12] = [
    b"BW",
    &[0],
    &[1],
    &[2],
    &[0xfb, 0xff, 0xff],
    &[0xfc, 0xff, 0xff, 0xff, 0x7f],
    &[0xfc, 0x00, 0x50, 0x02, 0x00],
    &[0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
    &[0xfd, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80],
    &[0xfd, 0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00],
    &[0xfe],
    &[0xff],
];

/// Texts that may confuse a parser of paths or names.
const TEXT: [&[u8]; 12] = [
    b"/",
    b"//",
    b".",
    b"..",
    b"-",
    b"+",
    b"0",
    b"-n-",
    b"\n",
    b"\0",
    "\u{e9}".as_bytes(),
    "\u{202e}".as_bytes(),
];

#[test]
fn any_bytes_are_one_stored_value_or_a_typed_error() {
    corpus("wire").exercise(MUTANTS, &BYTES, targets::wire);
}

#[test]
fn any_path_has_its_canonical_form_or_is_foreign() {
    corpus("path").exercise(MUTANTS, &TEXT, targets::path);
}

#[test]
fn any_text_is_a_valid_name_or_refused() {
    corpus("name").exercise(MUTANTS, &TEXT, targets::name);
}

fn corpus(target: &str) -> Corpus {
    Corpus::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus"), target)
}

/// The bytes that any build has written are seeds of the fuzzer. `golden/*.hex` is for readers, the corpus for the
/// fuzzer.
#[test]
fn the_golden_bytes_of_every_version_are_in_the_corpus() {
    let corpus = corpus("wire");
    let inputs: BTreeSet<_> = corpus.inputs().iter().collect();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/wire/golden");
    let mut files = 0;
    for entry in std::fs::read_dir(golden).expect("the folder of golden files is readable") {
        let path = entry.expect("the directory entry is readable").path();
        let text = std::fs::read_to_string(&path).expect("the golden file is readable");
        let digits = text.trim();
        let pairs = (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16));
        let bytes = pairs.collect::<Result<Vec<_>, _>>().expect("hexadecimal digits");
        assert!(inputs.contains(&bytes), "{} is not in fuzz/corpus/wire", path.display());
        files += 1;
    }
    assert!(files >= 7, "{files} golden files");
}

/// Random bytes rarely have a kind and a valid body of it, so the fuzzer starts from one value of each type.
#[test]
fn the_corpus_has_a_value_of_every_stored_type() {
    struct Kinds(Vec<u8>);
    impl Types for Kinds {
        fn visit<T: Stored + PartialEq + Debug>(&mut self) {
            self.0.push(T::KIND);
        }
    }
    let mut kinds = Kinds(Vec::new());
    each_type(&mut kinds);
    let found: BTreeSet<u8> =
        corpus("wire").inputs().iter().flat_map(|input| targets::types_of(input)).collect();
    assert_eq!(found.into_iter().collect::<Vec<_>>(), kinds.0, "the kinds of values in fuzz/corpus/wire");
}

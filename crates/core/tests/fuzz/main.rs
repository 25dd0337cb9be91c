//! The targets over their corpus, in every run of the suite.

mod targets;

use std::collections::BTreeSet;
use std::path::Path;

use bellwether_testkit::fuzz::Corpus;

/// Mutants per target: a second or two of a debug build.
const MUTANTS: usize = 20_000;

/// What bincode writes before a long integer, alone and with a length that lies behind it; the header; option tags.
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

/// What a path or a name may be confused by.
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
fn any_path_is_ours_in_its_one_spelling_or_somebody_elses() {
    corpus("path").exercise(MUTANTS, &TEXT, targets::path);
}

#[test]
fn any_text_is_a_name_by_the_rule_or_refused() {
    corpus("name").exercise(MUTANTS, &TEXT, targets::name);
}

fn corpus(target: &str) -> Corpus {
    Corpus::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus"), target)
}

/// What any build ever wrote is among the fuzzer's seeds. `golden/*.hex` are for people, the corpus is for the fuzzer.
#[test]
fn the_golden_bytes_of_every_version_are_in_the_corpus() {
    let corpus = corpus("wire");
    let inputs: BTreeSet<_> = corpus.inputs().iter().collect();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/wire/golden");
    let mut files = 0;
    for entry in std::fs::read_dir(golden).expect("the golden bytes are there") {
        let path = entry.expect("a directory is read").path();
        let text = std::fs::read_to_string(&path).expect("a golden file is read");
        let digits = text.trim();
        let pairs = (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16));
        let bytes = pairs.collect::<Result<Vec<_>, _>>().expect("hexadecimal digits");
        assert!(inputs.contains(&bytes), "{} is not in fuzz/corpus/wire", path.display());
        files += 1;
    }
    assert!(files >= 7, "{files} golden files");
}

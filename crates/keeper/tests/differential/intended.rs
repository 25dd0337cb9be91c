//! The intended differences of the keeper, with their reasons. `docs/keeper-differences.md` publishes them.

use bellwether_keeper::server::Compat;

use crate::run::Record;
use crate::script::Step;

/// An intended difference.
pub(crate) struct Intended {
    /// The name in the document.
    pub(crate) name: &'static str,
    /// The reason in the document.
    pub(crate) reason: &'static str,
    /// The releases that show it.
    releases: &'static [Compat],
    /// Whether it explains the difference between ZooKeeper's line and the keeper's line of this step.
    explains: fn(&Step, &str, &str) -> bool,
}

const BOTH: &[Compat] = &[Compat::V3_8_0, Compat::V3_9];

/// All intended differences. Any other difference fails the test.
pub(crate) const INTENDED: &[Intended] = &[
    Intended {
        name: "An error reply has no body",
        reason: "After some errors ZooKeeper sends a partial body; no client reads it.",
        releases: BOTH,
        explains: |_step, expected, answered| {
            answered.ends_with(" no body")
                && !answered.contains(" err 0 ")
                && expected.starts_with(answered.trim_end_matches("no body"))
        },
    },
    Intended {
        name: "checkWatches accepts any text as a path",
        reason: "For some invalid paths 3.8.0 returns a marshalling error; the keeper and 3.9 look for a watch.",
        releases: &[Compat::V3_8_0],
        explains: |step, expected, answered| {
            step.calls().iter().any(|call| call.op == CHECK_WATCHES)
                && expected.ends_with(" err -5 no body")
                && ["err -121", "err 0"].iter().any(|found| answered.replace(found, "err -5") == expected)
        },
    },
    Intended {
        name: "All text is UTF-8",
        reason: "Java encodes a character outside the basic multilingual plane as two surrogates of three bytes each, \
                 which other languages cannot decode. No znode can have such a name, so only echoed text differs.",
        releases: BOTH,
        explains: |_step, expected, answered| expected.replace(CRAB_IN_JAVA, CRAB) == answered,
    },
    Intended {
        name: "A single check is answered",
        reason: "ZooKeeper supports checks only inside a multi. A single check that passes makes 3.8.0 fail while it \
                 builds the reply, and the client never gets one. 3.9 rejects it.",
        releases: &[Compat::V3_8_0],
        explains: |step, expected, answered| {
            step.calls().iter().any(|call| call.op == CHECK)
                && expected.ends_with(" no reply")
                && answered.ends_with(" err 0 no body")
        },
    },
];

/// The only character outside the basic multilingual plane in scripts.
const CRAB: &str = r"\xf0\x9f\xa6\x80";
const CRAB_IN_JAVA: &str = r"\xed\xa0\xbe\xed\xb6\x80";
const CHECK: i32 = 13;
const CHECK_WATCHES: i32 = 17;

#[test]
fn the_document_lists_the_intended_differences() {
    let published = include_str!("../../../../docs/keeper-differences.md");
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let published = squeezed(published);
    for Intended { name, reason, releases: _, explains: _ } in INTENDED {
        assert!(published.contains(&squeezed(&format!("**{name}.** {reason}"))), "not published: {name}");
    }
}

/// Returns whether every difference of a step is intended for this release.
pub(crate) fn explains(release: Compat, step: &Step, expected: &Record, answered: &Record) -> bool {
    let intended = || INTENDED.iter().filter(|intended| intended.releases.contains(&release));
    expected.len() == answered.len()
        && expected.iter().zip(answered).all(|(expected, answered)| {
            expected == answered || intended().any(|intended| (intended.explains)(step, expected, answered))
        })
}

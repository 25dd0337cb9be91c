//! The differences that the keeper means to have, each with its reason. `docs/keeper-differences.md` publishes them.

use crate::run::Record;
use crate::script::Step;

/// A difference that is none to be mended.
pub(crate) struct Intended {
    /// What it is, as the document calls it.
    pub(crate) name: &'static str,
    /// Why the keeper does not do as ZooKeeper does.
    pub(crate) reason: &'static str,
    /// Whether this is what made two lines of this step differ: ZooKeeper's, and the keeper's.
    explains: fn(&Step, &str, &str) -> bool,
}

/// All of them. A difference that matches none fails the test.
pub(crate) const INTENDED: &[Intended] = &[
    Intended {
        name: "A refused request is answered by its error alone",
        reason: "ZooKeeper sends the answer that it had half built behind some errors; no client reads it.",
        explains: |_step, expected, answered| {
            answered.ends_with(" no body")
                && !answered.contains(" err 0 ")
                && expected.starts_with(answered.trim_end_matches("no body"))
        },
    },
    Intended {
        name: "checkWatches knows its own connection's watches only",
        reason: "3.8.0 answers that there is a watch when any connection has one on the path, which is no answer to \
                 what was asked.",
        explains: |step, expected, answered| {
            step.calls().iter().any(|call| call.op == CHECK_WATCHES)
                && expected.ends_with(" err 0 no body")
                && answered.replace("err -121", "err 0") == expected
        },
    },
    Intended {
        name: "checkWatches takes any text for a path",
        reason: "ZooKeeper answers that it could not read a request for what is no path; there is no watch on it, \
                 and the keeper says so.",
        explains: |step, expected, answered| {
            step.calls().iter().any(|call| call.op == CHECK_WATCHES)
                && expected.ends_with(" err -5 no body")
                && answered.replace("err -121", "err -5") == expected
        },
    },
    Intended {
        name: "All text is UTF-8",
        reason: "Java sends a character beyond the basic plane as two surrogates of three bytes each, which no other \
                 language reads; no znode has such a name, so that it is an echo at most.",
        explains: |_step, expected, answered| expected.replace(CRAB_IN_JAVA, CRAB) == answered,
    },
    Intended {
        name: "A check on its own is answered",
        reason: "ZooKeeper knows checks inside a multi only; one that passes on its own makes it fail over its \
                 answer, and the client waits for ever.",
        explains: |step, expected, answered| {
            step.calls().iter().any(|call| call.op == CHECK)
                && expected.ends_with(" no reply")
                && answered.ends_with(" err 0 no body")
        },
    },
];

/// The one character beyond the basic plane that scripts have.
const CRAB: &str = r"\xf0\x9f\xa6\x80";
const CRAB_IN_JAVA: &str = r"\xed\xa0\xbe\xed\xb6\x80";
const CHECK: i32 = 13;
const CHECK_WATCHES: i32 = 17;

#[test]
fn the_published_list_is_this_one() {
    let published = include_str!("../../../../docs/keeper-differences.md");
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let published = squeezed(published);
    for Intended { name, reason, explains: _ } in INTENDED {
        assert!(published.contains(&squeezed(&format!("**{name}.** {reason}"))), "not published: {name}");
    }
}

/// Whether all differences of a step are intended ones.
pub(crate) fn explains(step: &Step, expected: &Record, answered: &Record) -> bool {
    expected.len() == answered.len()
        && expected.iter().zip(answered).all(|(expected, answered)| {
            expected == answered
                || INTENDED.iter().any(|intended| (intended.explains)(step, expected, answered))
        })
}

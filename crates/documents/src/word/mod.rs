//! The words of closed lists of values: in JSON, in the OpenAPI document and on the command line.

use std::borrow::Cow;
use std::mem::discriminant;
use std::time::Duration;

use bellwether::client::{Ended, GroupStage, IfExists};
use bellwether::node::ElectionStrategy;
use bellwether::schedule::{Misfire, Overlap};
use bellwether::{Scheme, State};
use clap::builder::{
    MapValueParser, PossibleValue, PossibleValuesParser, TypedValueParser, ValueParserFactory,
};
use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// A type of the library with a closed list of values.
pub trait Words: Copy + Send + Sync + 'static {
    /// Each value, its word and its meaning.
    const ALL: &'static [(Self, &'static str, &'static str)];
}

/// A type whose words are in the OpenAPI document.
pub trait Described: Words {
    /// Its name in the document.
    const NAME: &'static str;
    /// Its description.
    const TEXT: &'static str;
}

impl Words for ElectionStrategy {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Queue, "queue", "A queue: each candidate watches the one before it"),
        (Self::Single, "single", "One znode: the first candidate to create it leads"),
    ];
}

impl Described for Ended {
    const NAME: &'static str = "Ended";
    const TEXT: &'static str = "Final state of a job.";
}

impl Words for Ended {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Succeeded, "succeeded", "The job succeeded"),
        (Self::Cancelled, "cancelled", "A client cancelled the job"),
        (Self::Dead, "dead", "The job failed or lost its workers too often"),
    ];
}

impl Described for GroupStage {
    const NAME: &'static str = "GroupStage";
    const TEXT: &'static str = "Stage of a group.";
}

impl Words for GroupStage {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Open, "open", "Members are submitted and run"),
        (Self::Joining, "joining", "The join waits for a worker, or runs"),
        (Self::Finishing, "finishing", "The parent's finished handler waits for a worker, or runs"),
        (Self::Done, "done", "The group has ended"),
    ];
}

impl Described for IfExists {
    const NAME: &'static str = "IfExists";
    const TEXT: &'static str = "What to do if a job with this id exists.";
}

impl Words for IfExists {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Same, "same", "The same job if kind and payload are the same, otherwise a conflict"),
        (
            Self::Ignore,
            "ignore",
            "The submission is accepted and nothing is done, whatever the existing job is",
        ),
        (
            Self::Again,
            "again",
            "As `same`, but a job that has ended is opened again. Over HTTP that needs the role `operate`",
        ),
    ];
}

impl Described for Misfire {
    const NAME: &'static str = "Misfire";
    const TEXT: &'static str = "What to do with ticks that were missed because there was no leader.";
}

impl Words for Misfire {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Skip, "skip", "No missed tick gets a job"),
        (Self::Once, "once", "The last missed tick gets a job, on behalf of all of them"),
        (CATCH_UP, "catch_up", "The last missed ticks get their jobs, in order"),
    ];
}

/// The policy `catch_up` with its default limits.
const CATCH_UP: Misfire = Misfire::CatchUp { at_most: 10, within: Duration::from_secs(24 * 3600) };

impl Described for Overlap {
    const NAME: &'static str = "Overlap";
    const TEXT: &'static str = "What to do with a tick while the job of the last tick has not ended.";
}

impl Words for Overlap {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Allow, "allow", "The tick gets its job"),
        (Self::Forbid, "forbid", "The tick is skipped"),
        (Self::Queue, "queue", "The tick gets its job, which waits for the other jobs in a lane"),
    ];
}

impl Words for Scheme {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (
            Self::Digest,
            "digest",
            "ZooKeeper's built-in scheme: every server supports it and accepts any password",
        ),
        (
            Self::SaslDigestMd5,
            "sasl-digest-md5",
            "SASL DIGEST-MD5, for an ensemble that stores the passwords and rejects wrong ones",
        ),
    ];
}

impl Described for State {
    const NAME: &'static str = "State";
    const TEXT: &'static str = "State of a job.";
}

impl Words for State {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Queued, "queued", "Waits for a worker"),
        (Self::Delayed, "delayed", "Waits for its time"),
        (Self::Running, "running", "Assigned to a worker"),
        (Self::Succeeded, "succeeded", "Ended with a result"),
        (Self::Cancelled, "cancelled", "Ended by a caller"),
        (Self::Dead, "dead", "Ended after its last failed attempt"),
        (Self::Quarantined, "quarantined", "Its record cannot be read"),
    ];
}

/// A value that is read from its word, and written as its word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Word<T>(pub T);

/// The word of a state.
pub type StateWord = Word<State>;
/// The word of a final state.
pub type EndedWord = Word<Ended>;
/// The word of a group's stage.
pub type GroupStageWord = Word<GroupStage>;
/// The word of what a submission does if its id exists.
pub type IfExistsWord = Word<IfExists>;
/// The word of what happens to missed ticks. The limits of `catch_up` are not part of it.
pub type MisfireWord = Word<Misfire>;
/// The word of what a tick does if the last job has not ended.
pub type OverlapWord = Word<Overlap>;

impl<T: Words> Word<T> {
    /// Returns the word.
    pub fn as_str(self) -> &'static str {
        let named = T::ALL.iter().find(|(value, ..)| discriminant(value) == discriminant(&self.0));
        named.expect("each value has a word").1
    }
}

impl<T: Words> Serialize for Word<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de, T: Words> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = Cow::<'de, str>::deserialize(deserializer)?;
        let named = T::ALL.iter().find(|(_, word, _)| *word == given);
        named.map(|(value, ..)| Self(*value)).ok_or_else(|| {
            // The longest word is shorter; a body may contain a much longer text.
            let given: String = given.chars().take(64).collect();
            let words = T::ALL.iter().map(|(_, word, _)| format!("`{word}`")).collect::<Vec<_>>();
            D::Error::custom(format!("unknown variant `{given}`, expected one of {}", words.join(", ")))
        })
    }
}

impl<T: Described> PartialSchema for Word<T> {
    fn schema() -> RefOr<Schema> {
        let meanings = T::ALL.iter().map(|(_, word, meaning)| format!("* `{word}`: {meaning}."));
        let text = [T::TEXT.to_owned(), String::new()].into_iter().chain(meanings).collect::<Vec<_>>();
        let words = ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some(text.join("\n")))
            .enum_values(Some(T::ALL.iter().map(|(_, word, _)| *word)));
        words.into()
    }
}

impl<T: Described> ToSchema for Word<T> {
    fn name() -> Cow<'static, str> {
        T::NAME.into()
    }
}

/// An argument of the command line; its help has the meaning of each word.
impl<T: Words> ValueParserFactory for Word<T> {
    type Parser = MapValueParser<PossibleValuesParser, fn(String) -> Self>;

    fn value_parser() -> Self::Parser {
        let words = T::ALL.iter().map(|(_, word, meaning)| PossibleValue::new(*word).help(*meaning));
        PossibleValuesParser::new(words).map(|given| {
            let named = T::ALL.iter().find(|(_, word, _)| *word == given);
            Self(named.expect("the parser accepts only these words").0)
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn words<T: Words>() -> Vec<&'static str> {
        T::ALL.iter().map(|(_, word, _)| *word).collect()
    }

    #[test]
    fn the_words_are_those_of_the_library() {
        assert_eq!(words::<GroupStage>(), GroupStage::ALL.map(GroupStage::as_str));
        assert_eq!(words::<State>(), State::ALL.map(State::as_str));
        // Exhaustive, so that a new value is not forgotten.
        let ended = Ended::ALL.iter().map(|(value, ..)| match value {
            Ended::Succeeded => "succeeded",
            Ended::Cancelled => "cancelled",
            Ended::Dead => "dead",
        });
        assert_eq!(words::<Ended>(), ended.collect::<Vec<_>>());
        let if_exists = IfExists::ALL.iter().map(|(value, ..)| match value {
            IfExists::Same => "same",
            IfExists::Ignore => "ignore",
            IfExists::Again => "again",
        });
        assert_eq!(words::<IfExists>(), if_exists.collect::<Vec<_>>());
        let misfire = Misfire::ALL.iter().map(|(value, ..)| match value {
            Misfire::Skip => "skip",
            Misfire::Once => "once",
            Misfire::CatchUp { .. } => "catch_up",
        });
        assert_eq!(words::<Misfire>(), misfire.collect::<Vec<_>>());
        let overlap = Overlap::ALL.iter().map(|(value, ..)| match value {
            Overlap::Allow => "allow",
            Overlap::Forbid => "forbid",
            Overlap::Queue => "queue",
        });
        assert_eq!(words::<Overlap>(), overlap.collect::<Vec<_>>());
        let election = ElectionStrategy::ALL.iter().map(|(value, ..)| match value {
            ElectionStrategy::Queue => "queue",
            ElectionStrategy::Single => "single",
        });
        assert_eq!(words::<ElectionStrategy>(), election.collect::<Vec<_>>());
        let scheme = Scheme::ALL.iter().map(|(value, ..)| match value {
            Scheme::Digest => "digest",
            Scheme::SaslDigestMd5 => "sasl-digest-md5",
        });
        assert_eq!(words::<Scheme>(), scheme.collect::<Vec<_>>());
    }

    #[test]
    fn a_word_is_read_and_another_text_is_refused_with_all_words() {
        for (value, word, _) in Ended::ALL {
            assert_eq!(serde_json::from_value::<Word<Ended>>(json!(word)).unwrap(), Word(*value));
            assert_eq!(json!(Word(*value)), json!(word));
        }
        let refused = serde_json::from_value::<Word<Ended>>(json!("x".repeat(100_000))).unwrap_err();
        let refused = refused.to_string();
        assert!(refused.ends_with("`, expected one of `succeeded`, `cancelled`, `dead`"), "{refused}");
        assert!(refused.len() < 200);
    }

    #[test]
    fn the_schema_has_the_words_and_their_meanings() {
        let schema = serde_json::to_value(Word::<Overlap>::schema()).unwrap();
        assert_eq!(schema["enum"], json!(["allow", "forbid", "queue"]));
        assert!(schema["description"].as_str().unwrap().contains("* `forbid`: The tick is skipped."));
    }
}

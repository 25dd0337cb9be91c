//! The words of closed lists of values: in JSON, in the OpenAPI document and on the command line.

mod lists;

use std::borrow::Cow;
use std::fmt;
use std::mem::discriminant;

use bellwether::State;
use bellwether::client::{
    Accepted, Added, AttemptOutcome, ChangeKind, Ended, GroupStage, IfExists, ScheduleState, WaitReason,
};
use bellwether::error::Remedy;
use bellwether::schedule::{Misfire, Overlap, SkipReason};
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

/// A value that is read from its word, and written as its word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Word<T>(pub T);

// The OpenAPI document names the schema of a generic type after its parameter, but that of an alias after `Described::NAME`.
/// The word of how a submission was accepted.
pub type AcceptedWord = Word<Accepted>;
/// The word of what adding a schedule did.
pub type AddedWord = Word<Added>;
/// The word of how an attempt ended.
pub type AttemptOutcomeWord = Word<AttemptOutcome>;
/// The word of a change.
pub type ChangeKindWord = Word<ChangeKind>;
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
/// The word of what the caller of a failed call can do.
pub type RemedyWord = Word<Remedy>;
/// The word of a schedule's state.
pub type ScheduleStateWord = Word<ScheduleState>;
/// The word of why ticks got no job.
pub type SkipReasonWord = Word<SkipReason>;
/// The word of a job's state.
pub type StateWord = Word<State>;
/// The word of why a job does not run now.
pub type WaitReasonWord = Word<WaitReason>;

impl<T: Words> Word<T> {
    /// Returns the word.
    pub fn as_str(self) -> &'static str {
        let named = T::ALL.iter().find(|(value, ..)| discriminant(value) == discriminant(&self.0));
        named.expect("each value has a word").1
    }

    /// Returns the word for a table, with spaces.
    pub fn plain(self) -> String {
        self.as_str().replace('_', " ")
    }
}

impl<T: Words> fmt::Display for Word<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
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

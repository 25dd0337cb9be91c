//! Names: bounded, path-safe strings that identify things.
//!
//! Every name becomes the name of a znode or a metric label, so all names follow one rule: 1 to
//! [`budget::MAX_NAME_BYTES`] bytes of `[A-Za-z0-9._-]`, and not `.` or `..`, which ZooKeeper refuses in a path. An
//! id that is composed of names (of a job or a group) may also contain `:` and `@` as separators: `report:nightly`,
//! `sum:batch-7:12`, `nightly@2026-11-21T03:00:00Z`. A name is checked once, where it enters (client, CLI, wire), and
//! trusted afterwards. Names appear in logs and in `zkCli.sh ls`: never put a secret into one.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::budget;
use crate::time::WallMillis;

/// Why a string is not a valid name. The text contains the field, the bound and the invalid character.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The name has no characters.
    #[error("{field} is empty: give 1 to {max} characters of [A-Za-z0-9._-]")]
    Empty {
        /// The refused name.
        field: &'static str,
        /// The bound.
        max: usize,
    },
    /// The name exceeds the bound.
    #[error("{field} is {len} bytes long: at most {max} are allowed")]
    TooLong {
        /// The refused name.
        field: &'static str,
        /// Its length in bytes.
        len: usize,
        /// The bound.
        max: usize,
    },
    /// The name has a character outside its alphabet.
    #[error("{field} has {character:?} at byte {at}: only {allowed} are allowed")]
    Character {
        /// The refused name.
        field: &'static str,
        /// The first invalid character.
        character: char,
        /// Its byte offset.
        at: usize,
        /// The allowed characters.
        allowed: &'static str,
    },
    /// The name is `.` or `..`, which a ZooKeeper path cannot contain.
    #[error("{field} must not be {name:?}: ZooKeeper reserves it")]
    Reserved {
        /// The refused name.
        field: &'static str,
        /// The reserved name.
        name: String,
    },
}

/// The characters that a name may contain.
#[derive(Clone, Copy)]
enum Alphabet {
    Plain,
    /// Also the separators of a composed id.
    Composed,
}

impl Alphabet {
    const fn describe(self) -> &'static str {
        match self {
            Self::Plain => "[A-Za-z0-9._-]",
            Self::Composed => "[A-Za-z0-9._:@-]",
        }
    }

    fn has(self, c: char) -> bool {
        let composed = matches!(self, Self::Composed) && matches!(c, ':' | '@');
        composed || c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
    }
}

fn check(field: &'static str, alphabet: Alphabet, name: &str) -> Result<(), NameError> {
    check_up_to(budget::MAX_NAME_BYTES, field, alphabet, name)
}

fn check_up_to(max: usize, field: &'static str, alphabet: Alphabet, name: &str) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty { field, max });
    }
    if name.len() > max {
        return Err(NameError::TooLong { field, len: name.len(), max });
    }
    if let Some((at, character)) = name.char_indices().find(|(_, c)| !alphabet.has(*c)) {
        return Err(NameError::Character { field, character, at, allowed: alphabet.describe() });
    }
    if name == "." || name == ".." {
        return Err(NameError::Reserved { field, name: name.to_owned() });
    }
    Ok(())
}

macro_rules! names {
    ($($(#[$doc:meta])* $type:ident = $field:literal, $alphabet:ident $(, $max:path)?;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $type(Arc<str>);

        impl $type {
            /// Checks `name` against the rule of this module.
            ///
            /// # Errors
            /// A [`NameError`] with the field, the bound and the invalid part.
            pub fn new(name: impl AsRef<str>) -> Result<Self, NameError> {
                let name = name.as_ref();
                check_up_to(names!(@max $($max)?), $field, Alphabet::$alphabet, name)?;
                Ok(Self(Arc::from(name)))
            }

            /// Returns the rule as a regular expression, which does not exclude `.` and `..`.
            #[must_use]
            pub fn pattern() -> String {
                format!("^{}{{1,{}}}$", Alphabet::$alphabet.describe(), names!(@max $($max)?))
            }

            /// The name as it appears in paths.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $type {
            type Error = NameError;
            fn try_from(name: String) -> Result<Self, NameError> {
                Self::new(name)
            }
        }

        impl std::str::FromStr for $type {
            type Err = NameError;
            fn from_str(name: &str) -> Result<Self, NameError> {
                Self::new(name)
            }
        }

        impl From<$type> for String {
            fn from(name: $type) -> Self {
                name.as_str().to_owned()
            }
        }

        impl std::borrow::Borrow<str> for $type {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
    (@max $max:path) => { $max };
    (@max) => { budget::MAX_NAME_BYTES };
}

names! {
    /// Identifies a job within its namespace: the same id is the same job.
    JobId = "job id", Composed;
    /// The job type: selects the handler that runs a job.
    Kind = "kind", Plain;
    /// A property that a worker offers and a job may require (`gpu`, `eu-west`).
    Tag = "tag", Plain;
    /// Jobs with one affinity key prefer one worker under the rendezvous strategy.
    AffinityKey = "affinity key", Plain;
    /// A key whose jobs run one at a time, in submission order.
    Lane = "lane", Plain;
    /// A group of jobs whose join runs once all of them are terminal.
    GroupId = "group", Composed;
    /// Identifies a schedule. Shorter than other names, so that the ids of its jobs are valid names.
    ScheduleId = "schedule", Plain, budget::MAX_SCHEDULE_ID_BYTES;
    /// Names a placement strategy: how the leader chooses a worker for a job.
    StrategyName = "strategy", Plain;
    /// Identifies a process, as chosen by its operator. Two nodes may share an id by mistake; nothing relies on it.
    NodeId = "node id", Plain;
}

impl JobId {
    /// Checks an id chosen by a user. Its plain alphabet prevents a collision with a composed id.
    ///
    /// # Errors
    /// [`NameError`], also for `:` and `@`.
    pub fn plain(name: impl AsRef<str>) -> Result<Self, NameError> {
        check("job id", Alphabet::Plain, name.as_ref())?;
        Self::new(name)
    }

    /// The id of the job with this kind and name.
    ///
    /// # Errors
    /// [`NameError`]: the name is invalid, or the id is too long.
    pub fn named(kind: &Kind, name: impl AsRef<str>) -> Result<Self, NameError> {
        let name = name.as_ref();
        check("name", Alphabet::Plain, name)?;
        Self::new(format!("{kind}:{name}"))
    }

    /// The id of the member with this kind and number in a group.
    ///
    /// # Errors
    /// [`NameError`]: the id is too long.
    pub fn member(kind: &Kind, group: &GroupId, number: u32) -> Result<Self, NameError> {
        Self::new(format!("{kind}:{group}:{number}"))
    }

    /// The id of a job that was submitted without one.
    #[must_use]
    pub fn from_uuid(uuid: Uuid) -> Self {
        Self(Arc::from(uuid.hyphenated().to_string()))
    }

    /// The time in a UUIDv7, such as the id of a job that was submitted without one: when the client generated it, by
    /// the client's clock. `None` for any other id.
    #[must_use]
    pub(crate) fn generated_at(&self) -> Option<WallMillis> {
        let uuid = Uuid::try_parse(&self.0)
            .ok()
            .filter(|uuid| uuid.get_version() == Some(uuid::Version::SortRand))?;
        let (seconds, nanos) = uuid.get_timestamp()?.to_unix();
        Some(WallMillis(seconds * 1_000 + u64::from(nanos / 1_000_000)))
    }
}

impl GroupId {
    /// Checks a name chosen by a user. Its plain alphabet prevents a collision with the id of a group of sub-jobs.
    ///
    /// # Errors
    /// [`NameError`], also for `:` and `@`.
    pub fn plain(name: impl AsRef<str>) -> Result<Self, NameError> {
        check("group", Alphabet::Plain, name.as_ref())?;
        Self::new(name)
    }
}

/// One incarnation of a node's worker role. Each ZooKeeper session and each restart gets a new one. It is never derived
/// from a host name, so that no incarnation inherits the assignments of its predecessor (S14).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WorkerId(Uuid);

impl WorkerId {
    /// Wraps a UUID that was created for this incarnation only.
    #[must_use]
    pub const fn new(uuid: Uuid) -> Self {
        Self(uuid)
    }

    /// The UUID.
    #[must_use]
    pub const fn uuid(self) -> Uuid {
        self.0
    }

    /// Parses the id from its znode name; `None` when it is not a hyphenated UUID.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Uuid::try_parse(name).ok().filter(|uuid| uuid.hyphenated().to_string() == name).map(Self)
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

impl fmt::Debug for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_valid_name_is_kept_unchanged() {
        for name in ["a", "A.b_c-9", &"x".repeat(budget::MAX_NAME_BYTES)] {
            assert_eq!(JobId::new(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn the_pattern_of_a_name_has_its_characters_and_its_length() {
        assert_eq!(Kind::pattern(), "^[A-Za-z0-9._-]{1,128}$");
        assert_eq!(JobId::pattern(), "^[A-Za-z0-9._:@-]{1,128}$");
        assert_eq!(ScheduleId::pattern(), "^[A-Za-z0-9._-]{1,91}$");
    }

    #[test]
    fn a_name_error_states_the_field_and_the_reason() {
        let refused = |name: &str| Kind::new(name).unwrap_err().to_string();
        assert_eq!(refused(""), "kind is empty: give 1 to 128 characters of [A-Za-z0-9._-]");
        assert_eq!(refused(&"x".repeat(129)), "kind is 129 bytes long: at most 128 are allowed");
        assert_eq!(refused("a/b"), "kind has '/' at byte 1: only [A-Za-z0-9._-] are allowed");
        assert_eq!(refused("a\u{0}"), "kind has '\\0' at byte 1: only [A-Za-z0-9._-] are allowed");
        assert_eq!(refused("é"), "kind has 'é' at byte 0: only [A-Za-z0-9._-] are allowed");
        assert_eq!(refused(".."), "kind must not be \"..\": ZooKeeper reserves it");
    }

    #[test]
    fn a_user_given_id_never_equals_a_composed_id() {
        let kind = Kind::new("sum").unwrap();
        assert_eq!(JobId::named(&kind, "nightly").unwrap().as_str(), "sum:nightly");
        let group = GroupId::new("batch-7").unwrap();
        assert_eq!(JobId::member(&kind, &group, 12).unwrap().as_str(), "sum:batch-7:12");
        assert_eq!(JobId::new("sum:batch-7:12"), JobId::member(&kind, &group, 12));
        for taken in ["sum:nightly", "nightly@20261121T030000Z"] {
            let error = JobId::plain(taken).unwrap_err().to_string();
            assert!(error.ends_with("only [A-Za-z0-9._-] are allowed"), "{error}");
        }
        assert!(JobId::named(&kind, "a:b").is_err(), "different names could give the same id");
        let long = JobId::named(&kind, "x".repeat(125)).unwrap_err().to_string();
        assert_eq!(long, "job id is 129 bytes long: at most 128 are allowed");
    }

    #[test]
    fn a_worker_id_is_parsed_only_from_its_canonical_form() {
        let id = WorkerId::new(Uuid::from_u128(7));
        assert_eq!(WorkerId::parse(&id.to_string()), Some(id));
        assert_eq!(WorkerId::parse("00000000000000000000000000000007"), None);
        assert_eq!(WorkerId::parse("web-1"), None);
    }

    #[test]
    fn a_worker_id_is_printed_the_same_way_in_a_log() {
        let id = WorkerId::new(Uuid::from_u128(7));
        assert_eq!(format!("{id:?}"), "00000000-0000-0000-0000-000000000007");
    }
}

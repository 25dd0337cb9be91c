//! What a token may submit, and until when it is valid.
//!
//! A scope narrows the role of its token. It follows the three words of the token's line:
//!
//! ```text
//! ci submit sha256:9f86d0… kinds=mail,report.* lanes=eu-* max_priority=5 max_open_jobs=1000 expires=2027-01-01T00:00:00Z
//! ```
//!
//! It concerns the jobs that a caller submits, alone, in a batch, as members of a group or by a schedule. It does not limit
//! what the role may read or change.

use std::time::SystemTime;

use bellwether::InstantText;
use bellwether::client::JobOptions;

use super::Role;

/// The highest `max_open_jobs`. The gateway remembers the ids of these jobs.
pub(super) const MAX_OPEN_JOBS: usize = 10_000;

/// The bound of a job's priority.
const HIGHEST_PRIORITY: u8 = 9;

/// The limits of a token. The default limits nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Scope {
    kinds: Option<Patterns>,
    lanes: Option<Patterns>,
    max_priority: Option<u8>,
    /// How many open jobs the token may have submitted.
    pub(crate) max_open_jobs: Option<usize>,
    expires: Option<SystemTime>,
}

/// Names, of which one may end with `*` for all names with this beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Patterns(Box<[Box<str>]>);

impl Patterns {
    fn parse(text: &str) -> Option<Self> {
        let patterns = text.split(',').map(Box::from).collect::<Box<[Box<str>]>>();
        let named = |pattern: &str| {
            let name = pattern.strip_suffix('*').unwrap_or(pattern);
            !pattern.is_empty() && !name.contains('*')
        };
        patterns.iter().all(|pattern| named(pattern)).then_some(Self(patterns))
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => **pattern == *name,
        })
    }

    fn list(&self) -> String {
        self.0.join(", ")
    }
}

impl Scope {
    /// Parses the words after the digest.
    pub(super) fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let mut scope = Self::default();
        for word in words {
            // The error does not repeat the word, which may be a misplaced token.
            let (key, value) = word.split_once('=').ok_or("a word after the digest is not KEY=VALUE")?;
            let taken = |taken: bool| if taken { Err(format!("{key} is given twice")) } else { Ok(()) };
            match key {
                "kinds" => {
                    taken(scope.kinds.is_some())?;
                    let kinds = Patterns::parse(value);
                    scope.kinds =
                        Some(kinds.ok_or("kinds must be names or beginnings, such as mail,report.*")?);
                }
                "lanes" => {
                    taken(scope.lanes.is_some())?;
                    let lanes = Patterns::parse(value);
                    scope.lanes = Some(lanes.ok_or("lanes must be names or beginnings, such as eu-*")?);
                }
                "max_priority" => {
                    taken(scope.max_priority.is_some())?;
                    let most = value.parse::<u8>().ok().filter(|most| *most <= HIGHEST_PRIORITY);
                    scope.max_priority = Some(most.ok_or("max_priority must be 0 to 9")?);
                }
                "max_open_jobs" => {
                    taken(scope.max_open_jobs.is_some())?;
                    let most = value.parse().ok().filter(|most| (1..=MAX_OPEN_JOBS).contains(most));
                    let most = most.ok_or_else(|| format!("max_open_jobs must be 1 to {MAX_OPEN_JOBS}"))?;
                    scope.max_open_jobs = Some(most);
                }
                "expires" => {
                    taken(scope.expires.is_some())?;
                    let at = value.parse::<InstantText>().ok().map(|InstantText(at)| at);
                    scope.expires =
                        Some(at.ok_or("expires must be an instant such as 2027-01-01T00:00:00Z")?);
                }
                _ => {
                    return Err(
                        "the keys after the digest are kinds, lanes, max_priority, max_open_jobs and expires"
                            .to_owned(),
                    );
                }
            }
        }
        Ok(scope)
    }

    /// Whether the token is no longer valid.
    pub(crate) fn has_expired(&self, now: SystemTime) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// Returns what keeps a token of this role and scope from submitting such a job.
    pub(crate) fn refuses(
        &self,
        role: Role,
        kind: &str,
        options: &JobOptions,
        reopens: bool,
    ) -> Option<String> {
        if reopens && !role.permits(Role::Operate) {
            return Some(format!(
                "it has the role {role}: if_exists again opens jobs that have ended, which needs {}",
                Role::Operate
            ));
        }
        if let Some(refused) = self.refuses_kind(kind) {
            return Some(refused);
        }
        if let (Some(lanes), Some(lane)) = (&self.lanes, &options.lane)
            && !lanes.has(lane)
        {
            return Some(format!("it may use only the lanes {}", lanes.list()));
        }
        let priority = options.priority.or(JobOptions::defaults().priority);
        match (self.max_priority, priority) {
            (Some(most), Some(priority)) if priority > most => {
                Some(format!("its highest priority is {most}, not {priority}: set options.priority"))
            }
            (Some(_) | None, Some(_) | None) => None,
        }
    }

    /// Returns what keeps a token of this scope from creating a group of this kind.
    pub(crate) fn refuses_kind(&self, kind: &str) -> Option<String> {
        let kinds = self.kinds.as_ref().filter(|kinds| !kinds.has(kind))?;
        Some(format!("it may submit only jobs of the kinds {}", kinds.list()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn scope(words: &str) -> Scope {
        Scope::parse(words.split_whitespace()).unwrap()
    }

    fn refused(scope: &Scope, kind: &str, options: &JobOptions) -> Option<String> {
        scope.refuses(Role::Submit, kind, options, false)
    }

    #[test]
    fn kinds_and_lanes_are_names_or_beginnings() {
        let scope = scope("kinds=mail,report.* lanes=eu-*");
        let bare = JobOptions::default();
        for kind in ["mail", "report.daily", "report."] {
            assert_eq!(refused(&scope, kind, &bare), None, "{kind}");
        }
        for kind in ["mails", "report", "exec", "Mail"] {
            let said = refused(&scope, kind, &bare).unwrap();
            assert_eq!(said, "it may submit only jobs of the kinds mail, report.*", "{kind}");
        }
        assert_eq!(refused(&scope, "mail", &JobOptions::default().lane("eu-1")), None);
        let said = refused(&scope, "mail", &JobOptions::default().lane("us-1")).unwrap();
        assert_eq!(said, "it may use only the lanes eu-*");
    }

    #[test]
    fn the_default_priority_is_bounded_like_a_given_one() {
        let (five, four) = (scope("max_priority=5"), scope("max_priority=4"));
        assert_eq!(refused(&five, "mail", &JobOptions::default()), None);
        assert!(refused(&five, "mail", &JobOptions::default().priority(6)).is_some());
        assert_eq!(refused(&four, "mail", &JobOptions::default().priority(4)), None);
        let said = refused(&four, "mail", &JobOptions::default()).unwrap();
        assert_eq!(said, "its highest priority is 4, not 5: set options.priority");
    }

    #[test]
    fn opening_an_ended_job_again_needs_the_role_operate() {
        let options = JobOptions::default();
        let refuses = |role, again| Scope::default().refuses(role, "mail", &options, again);
        assert_eq!(refuses(Role::Submit, false), None);
        assert!(refuses(Role::Submit, true).unwrap().contains("needs operate"));
        assert_eq!(refuses(Role::Operate, true), None);
    }

    #[test]
    fn a_token_is_valid_until_the_instant_at_which_it_expires() {
        let scope = scope("expires=1970-01-01T00:00:10Z");
        assert!(!scope.has_expired(UNIX_EPOCH + Duration::from_millis(9_999)));
        assert!(scope.has_expired(UNIX_EPOCH + Duration::from_secs(10)));
        assert!(!Scope::default().has_expired(SystemTime::now()));
    }

    #[test]
    fn a_malformed_scope_is_refused_with_the_bound_and_without_the_word() {
        for (words, said) in [
            ("bw_secret", "a word after the digest is not KEY=VALUE"),
            (
                "bw_secret=1",
                "the keys after the digest are kinds, lanes, max_priority, max_open_jobs and expires",
            ),
            ("kinds=", "kinds must be names or beginnings, such as mail,report.*"),
            ("kinds=a,,b", "kinds must be names or beginnings, such as mail,report.*"),
            ("lanes=*a*", "lanes must be names or beginnings, such as eu-*"),
            ("max_priority=10", "max_priority must be 0 to 9"),
            ("max_open_jobs=0", "max_open_jobs must be 1 to 10000"),
            ("max_open_jobs=10001", "max_open_jobs must be 1 to 10000"),
            ("expires=tomorrow", "expires must be an instant such as 2027-01-01T00:00:00Z"),
            ("kinds=a kinds=b", "kinds is given twice"),
        ] {
            assert_eq!(Scope::parse(words.split_whitespace()), Err(said.to_owned()), "{words}");
        }
        scope("max_open_jobs=1");
        scope("max_open_jobs=10000 max_priority=9 kinds=*");
    }
}

//! The dead-letter job: created by the transaction that ends a job as dead, if the job asks for it.
//!
//! Any process may end a job as dead: its worker, the leader after a loss, an expired lease or an expiry. So the letter
//! is derived from the record alone, and each of them derives the same one. Its id contains the generation and a part of
//! the submission's token, so that it differs for each death: an id that is used again after its records were removed has
//! another token. A letter is an ordinary job of the kind `KIND.dead`. It asks for no letter itself.

use xxhash_rust::xxh3::xxh3_128;

use super::{JobRecord, JobState, Payload, Verdict};
use crate::budget::MAX_NAME_BYTES;
use crate::name::{JobId, Kind, NameError};

/// A hash of 128 bits as hexadecimal text.
const HASH_BYTES: usize = 32;

/// The kind of the dead-letter jobs of jobs of this kind.
///
/// # Errors
/// When it is too long for a kind, or for the ids of these jobs.
pub fn dead_letter_kind(kind: &Kind) -> Result<Kind, NameError> {
    let letter = Kind::new(format!("{kind}.dead"))?;
    JobId::new(format!("{letter}:@{}", "0".repeat(HASH_BYTES)))?;
    Ok(letter)
}

/// The dead-letter job of a job; `None` unless the record is dead and asks for one.
#[must_use]
pub fn dead_letter(job: &JobId, record: &JobRecord) -> Option<(JobId, JobRecord)> {
    let JobState::Terminal { verdict: Verdict::Dead, at } = record.state else { return None };
    if !record.policy.dead_letter {
        return None;
    }
    // The submission has checked the kind. A stored record with a longer one has no letter.
    let kind = dead_letter_kind(&record.kind).ok()?;
    let id = id(job, record, &kind)?;
    let JobRecord { generation, priority, trace, token, part, .. } = *record;
    let error = record.last_error.as_deref().unwrap_or_default();
    let payload = serde_json::json!({ "job": job.as_str(), "generation": generation, "error": error });
    // An error is far shorter than a payload may be, also if each of its characters is escaped.
    let payload = Payload::json(payload.to_string().into_bytes()).ok()?;
    Some((id, JobRecord { priority, trace, part, ..JobRecord::new(kind, payload, token, at) }))
}

/// Whether a job with this id is a dead-letter job. A name that a user gives contains no `@`.
#[must_use]
pub fn is_dead_letter(job: &JobId) -> bool {
    let parts = job.as_str().split_once(':');
    parts.is_some_and(|(kind, rest)| kind.ends_with(".dead") && rest.starts_with('@'))
}

/// Whether the payload of a job comes from the cluster itself: of a join, a finished job or a dead-letter job. A name that a
/// user gives contains no `@`.
#[must_use]
pub fn has_own_payload(job: &JobId) -> bool {
    let parts = job.as_str().split_once(":@");
    parts.is_some_and(|(kind, _)| [".join", ".finished", ".dead"].iter().any(|end| kind.ends_with(end)))
}

fn id(job: &JobId, record: &JobRecord, kind: &Kind) -> Option<JobId> {
    // The last bits of a UUIDv7 are random; 32 of them distinguish the submissions of one id.
    let life = record.token.as_u128() & 0xffff_ffff;
    let whose = format!("{job}@{}.{life:08x}", record.generation);
    let readable = format!("{kind}:@{whose}");
    let id = if readable.len() <= MAX_NAME_BYTES {
        readable
    } else {
        format!("{kind}:@{:032x}", xxh3_128(whose.as_bytes()))
    };
    JobId::new(id).ok()
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::budget::{MAX_ERROR_BYTES, MAX_PAYLOAD_BYTES};
    use crate::job::{Attempt, Ending, Policy};
    use crate::name::WorkerId;
    use crate::time::WallMillis;

    fn record(kind: &str) -> JobRecord {
        let payload = Payload::json(*b"7").unwrap();
        let record =
            JobRecord::new(Kind::new(kind).unwrap(), payload, Uuid::from_u128(0x0a_0000_beef), WallMillis(1));
        let policy = Policy { dead_letter: true, ..Policy::default() };
        let state = JobState::Terminal { verdict: Verdict::Dead, at: WallMillis(9) };
        JobRecord { policy, state, last_error: Some("no \"disk\"".into()), ..record }
    }

    fn job(id: &str) -> JobId {
        JobId::new(id).unwrap()
    }

    #[test]
    fn a_dead_job_with_the_option_has_a_dead_letter_job() {
        let (id, letter) = dead_letter(&job("order:7"), &record("bill")).unwrap();
        assert_eq!(id.as_str(), "bill.dead:@order:7@1.0000beef");
        assert_eq!((letter.kind.as_str(), letter.submitted_at), ("bill.dead", WallMillis(9)));
        let payload = r#"{"error":"no \"disk\"","generation":1,"job":"order:7"}"#;
        assert_eq!(letter.payload.bytes(), payload.as_bytes());
        assert!(!letter.is_terminal() && !letter.policy.dead_letter);
    }

    #[test]
    fn only_a_dead_letter_job_has_the_id_of_one() {
        let (letter, _) = dead_letter(&job("a"), &record("bill")).unwrap();
        assert!(is_dead_letter(&letter));
        for other in ["bill.dead", "bill.dead:a", "bill:@a", "sum.join:@bill.dead:@a@1.0000beef@1.00000001"] {
            assert!(!is_dead_letter(&job(other)), "{other}");
        }
    }

    #[test]
    fn other_ends_and_other_jobs_have_no_dead_letter_job() {
        let without = JobRecord { policy: Policy::default(), ..record("bill") };
        assert_eq!(dead_letter(&job("a"), &without), None);
        for verdict in [Verdict::Cancelled, Verdict::Succeeded(record("bill").payload)] {
            let state = JobState::Terminal { verdict, at: WallMillis(9) };
            assert_eq!(dead_letter(&job("a"), &JobRecord { state, ..record("bill") }), None);
        }
        let state = JobState::Open { not_before: None };
        assert_eq!(dead_letter(&job("a"), &JobRecord { state, ..record("bill") }), None);
    }

    #[test]
    fn each_death_has_a_dead_letter_job_with_another_id() {
        let first = dead_letter(&job("a"), &record("bill")).unwrap().0;
        for again in [
            JobRecord { generation: 2, ..record("bill") },
            JobRecord { token: Uuid::from_u128(1), ..record("bill") },
        ] {
            assert_ne!(dead_letter(&job("a"), &again).unwrap().0, first);
        }
    }

    #[test]
    fn the_longest_names_and_the_longest_error_fit_into_a_dead_letter_job() {
        let longest = MAX_NAME_BYTES - ".dead:@".len() - HASH_BYTES;
        let kind = |bytes| Kind::new("k".repeat(bytes)).unwrap();
        assert!(dead_letter_kind(&kind(longest)).is_ok());
        assert!(dead_letter_kind(&kind(longest + 1)).is_err());
        let record = record(&"k".repeat(longest));
        let attempt = Attempt { number: 1, worker: WorkerId::new(Uuid::nil()) };
        let open = JobRecord { state: JobState::Open { not_before: None }, ..record };
        let invalid = Ending::Invalid("\u{1}".repeat(2 * MAX_ERROR_BYTES));
        let (dead, _) = open.close(attempt, invalid, WallMillis(2), 0);
        let (_, letter) = dead_letter(&job(&"j".repeat(MAX_NAME_BYTES)), &dead).unwrap();
        assert!(letter.payload.bytes().len() < MAX_PAYLOAD_BYTES);
    }

    #[test]
    fn a_dead_letter_job_has_the_priority_the_trace_and_the_part_of_its_job() {
        let trace = crate::trace::TraceContext::new([1; 16], [2; 8], 1).ok();
        let dead = JobRecord { priority: crate::job::Priority::HIGHEST, trace, part: 3, ..record("bill") };
        let (_, letter) = dead_letter(&job("a"), &dead).unwrap();
        assert!(trace.is_some());
        assert_eq!((letter.priority, letter.trace, letter.part), (dead.priority, trace, 3));
    }

    #[test]
    fn only_the_jobs_of_the_cluster_have_its_payloads() {
        for own in ["sum.join:@g@1.00000001", "sum.finished:@g@1.00000001", "bill.dead:@a@1.0000beef"] {
            assert!(has_own_payload(&job(own)), "{own}");
        }
        for other in ["a", "bill.dead", "bill.dead:a", "bill:@a"] {
            assert!(!has_own_payload(&job(other)), "{other}");
        }
    }
}

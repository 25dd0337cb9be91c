use bellwether::client::WaitError;
use bellwether::{GroupId, ScheduleId};
use serde_json::Value;

use super::*;

fn remedy(problem: &Problem) -> Value {
    serde_json::to_value(problem).unwrap()["remedy"].clone()
}

#[test]
fn every_fault_has_a_remedy() {
    let faults = [
        (Fault::Invalid, "fix_input"),
        (Fault::Unauthenticated, "fix_input"),
        (Fault::Forbidden, "fix_input"),
        (Fault::ForeignOrigin, "fix_input"),
        (Fault::NotFound, "fix_input"),
        (Fault::UnknownWorker, "fix_input"),
        (Fault::NotAllowed, "fix_input"),
        (Fault::Conflict, "fix_input"),
        (Fault::Fenced, "give_up"),
        (Fault::LengthRequired, "fix_input"),
        (Fault::TooLarge, "fix_input"),
        (Fault::NotJson, "fix_input"),
        (Fault::TooMany, "retry"),
        (Fault::TooManyOpen, "retry"),
        (Fault::Panicked, "give_up"),
        (Fault::Refused, "give_up"),
        (Fault::Saturated, "retry"),
        (Fault::AuditUnavailable, "retry"),
        (Fault::Unavailable, "retry"),
        (Fault::Unknown, "read_back"),
        (Fault::Late, "retry"),
    ];
    for (fault, expected) in faults {
        let problem = fault.because("why");
        assert_eq!(remedy(&problem), expected, "{fault:?}");
        // A program that honours `Retry-After` and one that honours the remedy do the same.
        assert!(problem.retry_after.is_none() || expected == "retry", "{fault:?}");
    }
}

#[test]
fn an_answer_of_the_framework_has_a_remedy() {
    for (status, expected) in [(404, "fix_input"), (405, "fix_input"), (414, "fix_input"), (500, "give_up")] {
        assert_eq!(remedy(&Problem::of_status(StatusCode::from_u16(status).unwrap())), expected);
    }
}

#[test]
fn the_remedy_of_an_error_of_the_library_survives() {
    let id = || JobId::new("a").unwrap();
    let within = Duration::from_secs(1);
    let lost = |repeatable| SubmitError::Unknown { id: id(), repeatable, within };
    let lost_trigger = ScheduleError::TriggerUnknown { id: ScheduleId::new("s").unwrap(), job: id(), within };
    let absent = GroupError::NotFound { group: GroupId::new("g").unwrap() };
    let cases: [(Problem, &str, &str); 7] = [
        (lost(true).into(), "unknown", "retry"),
        (lost(false).into(), "unknown", "read_back"),
        (lost_trigger.into(), "unknown", "read_back"),
        (SubmitError::Overloaded { id: id(), entries: 1 }.into(), "saturated", "retry"),
        (Error::NotFound(id()).into(), "not-found", "fix_input"),
        (absent.into(), "not-found", "fix_input"),
        // The client of this gateway was closed; another gateway has another one.
        (WaitError::from(Error::from(Unavailable::Closed)).into(), "unavailable", "retry"),
    ];
    for (problem, word, expected) in cases {
        assert_eq!((problem.kind, remedy(&problem)), (word, expected.into()), "{problem:?}");
    }
}

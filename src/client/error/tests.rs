//! What a caller can do after an error.

use std::time::Duration;

use bellwether_core::chain::chain;
use bellwether_core::group::GroupError;
use bellwether_core::name::{GroupId, JobId, Kind, WorkerId};
use bellwether_core::outcome::Reason;
use bellwether_core::remedy::{ErrorClass, Remedy};
use bellwether_core::wire::WireError;
use bellwether_zk::NamespaceError;
use uuid::Uuid;

use super::*;
use crate::client::job::JobError;
use crate::codec::{CodecError, Part};
use crate::connection::{InvalidConnection, SessionTimeoutError};

fn id() -> JobId {
    JobId::new("a").expect("a letter")
}

#[test]
fn only_an_error_whose_call_is_safe_to_repeat_is_retryable() {
    let late = Unavailable::NotInTime { within: Duration::ZERO, reason: String::new(), served: true };
    let unknown = |repeatable| SubmitError::Unknown { id: id(), repeatable, within: Duration::ZERO };
    let contended = Error::Contended { subject: Subject::Job(id()), tries: 16 };
    let table = [
        (unknown(true), Remedy::Retry),
        (unknown(false), Remedy::ReadBack),
        (SubmitError::NotSent { id: id(), reason: late.clone() }, Remedy::Retry),
        (SubmitError::NotSent { id: id(), reason: Unavailable::Closed }, Remedy::GiveUp),
        (SubmitError::Overloaded { id: id(), entries: 5_000 }, Remedy::Retry),
        (SubmitError::Refused { id: id(), reason: Reason::Refused("throttled".into()) }, Remedy::Retry),
        (SubmitError::Refused { id: id(), reason: Reason::NoAuth }, Remedy::GiveUp),
        (SubmitError::Invalid(JobError::AgainWithStart { field: "delay" }), Remedy::FixInput),
        (SubmitError::Unreadable { id: id(), reason: WireError::Magic }, Remedy::GiveUp),
        (contended.into(), Remedy::Retry),
        (Error::NotFound(id()).into(), Remedy::FixInput),
        (Error::from(late).into(), Remedy::Retry),
    ];
    for (error, remedy) in table {
        assert_eq!(error.remedy(), remedy, "{error}");
        assert_eq!(error.is_retryable(), remedy == Remedy::Retry, "{error}");
    }
}

#[test]
fn the_chain_of_an_error_names_each_source_once() {
    let refused = Error::Refused(Reason::NoAuth);
    assert_eq!(chain(&refused), "ZooKeeper refused the request: not authorised");
    let name = GroupId::plain("a b").expect_err("a blank");
    let group =
        SubmitError::from(Error::Group(GroupError::IdTooLong { group: "g".into(), source: name.clone() }));
    assert_eq!(
        chain(&group),
        format!("the id of group g and the name of its kind are too long together: {name}")
    );
}

fn late() -> Unavailable {
    Unavailable::NotInTime { within: Duration::ZERO, reason: String::new(), served: true }
}

#[test]
fn each_error_of_a_call_has_a_class_and_names_its_job() {
    let (worker, kind) = (WorkerId::new(Uuid::nil()), Kind::new("sum").unwrap());
    let group = GroupId::new("g").unwrap();
    let source = |retryable| match retryable {
        true => CodecError::retryable("x"),
        false => CodecError::invalid("x"),
    };
    let undecodable =
        |retryable| Error::Undecodable { id: id(), part: Part::Result, source: source(retryable) };
    let contended = |subject| Error::Contended { subject, tries: 1 };
    for (error, class, names_job) in [
        (Error::Unavailable(late()), ErrorClass::Unavailable, false),
        (Error::Unavailable(Unavailable::Closed), ErrorClass::Closed, false),
        (Error::Refused(Reason::NoAuth), Reason::NoAuth.class(), false),
        (Error::NotFound(id()), ErrorClass::NotFound, true),
        (
            Error::Invalid { field: "x", allowed: String::new(), given: String::new() },
            ErrorClass::Invalid,
            false,
        ),
        (Error::Unreadable { id: id(), reason: WireError::Magic }, ErrorClass::Unreadable, true),
        (Error::WorkerUnreadable { worker, reason: WireError::Magic }, ErrorClass::Unreadable, false),
        (Error::Settings { path: "x", reason: WireError::Magic }, ErrorClass::Unreadable, false),
        (
            Error::GroupUnreadable { group: group.clone(), reason: WireError::Magic },
            ErrorClass::Unreadable,
            false,
        ),
        (undecodable(true), ErrorClass::Unavailable, true),
        (undecodable(false), ErrorClass::Unreadable, true),
        (Error::Group(GroupError::NotFound { group: group.clone() }), ErrorClass::NotFound, false),
        (Error::Quarantined(id()), ErrorClass::Conflict, true),
        (contended(Subject::Job(id())), ErrorClass::Contended, true),
        (contended(Subject::Page), ErrorClass::Contended, false),
    ] {
        assert_eq!((error.class(), error.job().is_some()), (class, names_job), "{error}");
        let error = WaitError::Client(error.clone());
        assert_eq!((error.class(), error.job().is_some()), (class, names_job), "{error}");
        let error = ResultError::from(error);
        assert_eq!(error.class(), class);
    }
    let subjects = [
        (Subject::Job(id()), "job a".to_owned()),
        (Subject::Group(group), "group g".to_owned()),
        (Subject::Pause(kind), "the pause of kind sum".to_owned()),
        (Subject::Worker(worker), format!("the registration of worker {worker}")),
        (Subject::Retention, "the retention".to_owned()),
        (Subject::Placement, "the placement strategy".to_owned()),
        (Subject::Page, "a page of records".to_owned()),
    ];
    for (subject, text) in subjects {
        assert_eq!(
            contended(subject).to_string(),
            format!("{text} changed 1 times during the call: try again")
        );
    }
}

#[test]
fn each_error_of_a_submission_has_a_class_and_names_its_job() {
    let kind = Kind::new("sum").unwrap();
    let encode = |source| SubmitError::Encode { id: id(), source };
    for (error, class, names_job) in [
        (SubmitError::Invalid(JobError::AgainWithStart { field: "delay" }), ErrorClass::Invalid, false),
        (SubmitError::Client(Error::NotFound(id())), ErrorClass::NotFound, true),
        (SubmitError::Client(Error::Refused(Reason::NoAuth)), Reason::NoAuth.class(), false),
        (
            SubmitError::Group(GroupError::NotFound { group: GroupId::new("g").unwrap() }),
            ErrorClass::NotFound,
            false,
        ),
        (SubmitError::Conflict { id: id(), kind, same_kind: true }, ErrorClass::Conflict, true),
        (SubmitError::Overloaded { id: id(), entries: 1 }, ErrorClass::Overloaded, true),
        (SubmitError::MinuteFull { id: id(), entries: 1 }, ErrorClass::Conflict, true),
        (SubmitError::TooManyMinutes { id: id(), minutes: 1 }, ErrorClass::Overloaded, true),
        (SubmitError::NotSent { id: id(), reason: late() }, ErrorClass::Unavailable, true),
        (
            SubmitError::Unknown { id: id(), repeatable: true, within: Duration::ZERO },
            ErrorClass::Unknown,
            true,
        ),
        (SubmitError::Refused { id: id(), reason: Reason::NoAuth }, Reason::NoAuth.class(), true),
        (SubmitError::Unreadable { id: id(), reason: WireError::Magic }, ErrorClass::Unreadable, true),
        (encode(CodecError::invalid("x")), ErrorClass::Invalid, true),
        (encode(CodecError::retryable("x")), ErrorClass::Unavailable, true),
        (
            SubmitError::Undecodable { id: id(), source: CodecError::invalid("x") },
            ErrorClass::Unreadable,
            true,
        ),
        (
            SubmitError::Undecodable { id: id(), source: CodecError::retryable("x") },
            ErrorClass::Unavailable,
            true,
        ),
    ] {
        assert_eq!((error.class(), error.job().is_some()), (class, names_job), "{error}");
    }
}

#[test]
fn a_namespace_error_is_retryable_only_if_the_namespace_may_be_usable_later() {
    let namespace = |reason| NamespaceError::Refused { chroot: "/x".into(), reason };
    for (error, class, remedy) in [
        (NamespaceError::Disconnected, ErrorClass::Unavailable, Remedy::Retry),
        (namespace(Reason::NotSent), ErrorClass::Unavailable, Remedy::Retry),
        (NamespaceError::Absent { chroot: "/x".into(), known: 8 }, ErrorClass::Closed, Remedy::GiveUp),
    ] {
        assert_eq!((error.class(), error.remedy()), (class, remedy), "{error}");
        assert_eq!(error.is_retryable(), error.may_pass(), "{error}");
    }
}

#[test]
fn a_wait_that_timed_out_and_a_connection_have_their_own_classes() {
    let timed_out = WaitError::TimedOut { id: id(), within: Duration::from_secs(1), last: None };
    assert_eq!((timed_out.class(), timed_out.job()), (ErrorClass::TimedOut, Some(&id())));
    assert_eq!(timed_out.to_string(), "job a has not ended after 1s");
    assert_eq!(ResultError::NoSubJobs(id()).class(), ErrorClass::Conflict);
    assert_eq!(ResultError::Encoded(id()).class(), ErrorClass::Unreadable);
    let kind = Kind::new("sum").unwrap();
    assert_eq!(ResultError::Kind { id: id(), there: kind, given: "x" }.class(), ErrorClass::Conflict);
    let source = serde_json::from_str::<i64>("\"x\"").unwrap_err();
    assert_eq!(ResultError::Type { id: id(), source }.class(), ErrorClass::Invalid);
    assert_eq!(ConnectError::from(late()).class(), ErrorClass::Unavailable);
    let given = Duration::ZERO;
    let timeout = InvalidConnection::from(SessionTimeoutError { given });
    assert_eq!(ConnectError::from(timeout).class(), ErrorClass::Invalid);
}

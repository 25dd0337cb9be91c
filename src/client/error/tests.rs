//! What a caller can do after an error.

use std::time::Duration;

use bellwether_core::chain::chain;
use bellwether_core::group::GroupError;
use bellwether_core::name::{GroupId, JobId};
use bellwether_core::outcome::Reason;
use bellwether_core::remedy::Remedy;
use bellwether_core::wire::WireError;

use super::*;
use crate::client::job::JobError;

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
        (SubmitError::Invalid(JobError::AgainLater), Remedy::FixInput),
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
    let group = SubmitError::from(Error::Group(GroupError::Name { group: "g".into(), source: name.clone() }));
    assert_eq!(chain(&group), format!("the names of group g and its kind do not fit together: {name}"));
}

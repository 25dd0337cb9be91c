//! The ends of members.

use bellwether_core::remedy::Remedy;

use super::*;
use crate::client::job::JobKind;

struct Sum;

impl JobKind for Sum {
    const NAME: &'static str = "sum";
    type Payload = Vec<i64>;
    type Result = i64;
}

fn member(end: MemberEnd) -> Member {
    Member::new(7, JobId::new("sum:g:7").unwrap(), end)
}

fn json(text: &str) -> MemberEnd {
    MemberEnd::Succeeded(Payload::json(text.as_bytes()).unwrap())
}

#[test]
fn a_typed_member_has_the_decoded_result_and_the_stored_bytes() {
    let typed = member(json("3")).decoded::<Sum>();
    assert_eq!(typed.end, MemberEnd::Succeeded(3));
    assert_eq!(typed.stored().unwrap().bytes(), b"3");
    assert_eq!(typed.into_result(), Ok(3));
    let untyped = member(json("3")).decoded::<Untyped>();
    assert_eq!(untyped.into_result().unwrap().bytes(), b"3");
}

#[test]
fn a_result_of_another_type_is_a_separate_end() {
    let typed = member(json("\"three\"")).decoded::<Sum>();
    assert!(matches!(&typed.end, MemberEnd::Undecodable(error) if error.contains("expected i64")));
    assert!(typed.succeeded());
    assert_eq!(typed.stored().unwrap().bytes(), b"\"three\"");
    let error = typed.into_result().unwrap_err();
    assert_eq!((error.class(), error.remedy()), (ErrorClass::Unreadable, Remedy::GiveUp));
    assert!(
        error
            .to_string()
            .starts_with("member 7 of the group has no result: job sum:g:7 has a result of another")
    );
}

#[test]
fn a_member_without_success_has_no_result_for_its_reason() {
    let table = [
        (MemberEnd::Cancelled, "was cancelled", ErrorClass::Failed),
        (MemberEnd::Dead("boom".into()), "is dead: boom", ErrorClass::Failed),
        (MemberEnd::Open, "has not ended", ErrorClass::Failed),
        (MemberEnd::Unreadable(None), "has no readable record", ErrorClass::Unreadable),
    ];
    for (end, reason, class) in table {
        let typed = member(end).decoded::<Sum>();
        assert!(!typed.succeeded() && typed.stored().is_none(), "{reason}");
        let error = typed.into_result().unwrap_err();
        assert_eq!((error.reason.as_str(), error.class()), (reason, class));
    }
}

//! The class and the remedy of every error of the public API that has them.

use bellwether_core::machine::election::campaign::Strategy;
use bellwether_core::outcome::Reason;
use bellwether_core::remedy::{ErrorClass, Remedy};
use bellwether_core::wire::WireError;

use crate::NamespaceError;

#[test]
fn a_namespace_that_cannot_be_opened_is_retryable_only_after_a_lost_connection_or_a_refused_request() {
    let chroot = || "/x".to_owned();
    let known = 1;
    let (found, given) = (Strategy::Queue, Strategy::Queue);
    let who = chroot;
    let retry = (ErrorClass::Unavailable, Remedy::Retry);
    let give_up = (ErrorClass::Closed, Remedy::GiveUp);
    let cases = [
        (NamespaceError::Newer { chroot: chroot(), found: 2, known }, give_up),
        (NamespaceError::Older { chroot: chroot(), found: 0, known }, give_up),
        (NamespaceError::Unreadable { chroot: chroot(), known, reason: WireError::Magic }, give_up),
        (NamespaceError::UnreadableFailover { chroot: chroot(), reason: WireError::Magic }, give_up),
        (NamespaceError::Foreign { chroot: chroot(), found: chroot(), known }, give_up),
        (NamespaceError::Absent { chroot: chroot(), known }, give_up),
        (NamespaceError::Strategy { chroot: chroot(), found, given }, give_up),
        (NamespaceError::LoginRefused { who: who() }, give_up),
        (NamespaceError::Forbidden { chroot: chroot(), who: who(), may_not: chroot() }, give_up),
        (NamespaceError::NotClosed { chroot: chroot(), who: who(), found: chroot() }, give_up),
        (NamespaceError::Disconnected, retry),
        (NamespaceError::Refused { chroot: chroot(), reason: Reason::NotSent }, retry),
    ];
    for (error, (class, remedy)) in cases {
        let expected = (class, remedy, remedy == Remedy::Retry);
        assert_eq!((error.class(), error.remedy(), error.is_retryable()), expected, "{error:?}");
    }
}

#[cfg(feature = "tls")]
#[test]
fn every_error_of_tls_is_invalid_input() {
    use crate::TlsError;
    let reason = || "why".to_owned();
    let file = TlsError::File { what: "a private key", path: "key".into(), reason: reason() };
    let identity =
        TlsError::Identity { certificate: "certificate".into(), key: "key".into(), reason: reason() };
    for error in [file, identity] {
        let expected = (ErrorClass::Invalid, Remedy::FixInput, false);
        assert_eq!((error.class(), error.remedy(), error.is_retryable()), expected, "{error:?}");
    }
}

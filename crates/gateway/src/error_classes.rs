//! The class and the remedy of every error of the public API.

use std::io;
use std::path::PathBuf;

use bellwether_remedy::{ErrorClass, Remedy};

use crate::access::{JwtError, TokenError};
use crate::metrics::MetricsError;
use crate::tls::TlsError;
use crate::{GatewayError, Limits};
use ErrorClass::{Conflict, Contended, Failed, Invalid};

macro_rules! check {
    ($($error:expr => $class:expr, $remedy:ident;)+) => {$(
        let error = $error;
        let expected = ($class, Remedy::$remedy, Remedy::$remedy == Remedy::Retry);
        assert_eq!((error.class(), error.remedy(), error.is_retryable()), expected, "{error:?}");
    )+};
}

#[test]
fn every_error_has_its_class_and_its_remedy() {
    let path = || PathBuf::from("file");
    let text = || "why".to_owned();
    let address = crate::DEFAULT_ADDRESS;
    let gateway = |kind: io::ErrorKind| GatewayError::Listen { address, source: kind.into() };
    let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
    let limits = Limits::default().waits(0).check().unwrap_err();
    check! {
        GatewayError::Exposed { address, lacks: "TLS" } => Invalid, FixInput;
        GatewayError::Limits(limits) => Invalid, FixInput;
        gateway(io::ErrorKind::AddrInUse) => Contended, Retry;
        gateway(io::ErrorKind::AddrNotAvailable) => Invalid, FixInput;
        gateway(io::ErrorKind::PermissionDenied) => Invalid, FixInput;
        gateway(io::ErrorKind::Other) => Failed, GiveUp;
        GatewayError::Died => Failed, GiveUp;
        MetricsError::Installed => Conflict, FixInput;
        MetricsError::Settings(text().into()) => Failed, GiveUp;
        JwtError::Setting { what: "issuer", most: 1 } => Invalid, FixInput;
        JwtError::Read { path: path(), source: denied() } => Invalid, FixInput;
        JwtError::Keys { path: path(), problem: text() } => Invalid, FixInput;
        TokenError::Read { path: path(), source: denied() } => Invalid, FixInput;
        TokenError::Line { path: path(), line: 1, problem: text() } => Invalid, FixInput;
        TokenError::None { path: path() } => Invalid, FixInput;
        TokenError::TooMany { path: path(), given: 1 } => Invalid, FixInput;
        TokenError::Name(bellwether::NodeId::new("").unwrap_err()) => Invalid, FixInput;
        TokenError::Scope(text()) => Invalid, FixInput;
        TokenError::Random => Failed, GiveUp;
        TlsError::File { what: "a key", path: path(), reason: text() } => Invalid, FixInput;
        TlsError::Refused(text().into()) => Invalid, FixInput;
        TlsError::Authority { path: path(), reason: text() } => Invalid, FixInput;
    }
}

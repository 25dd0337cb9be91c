//! The class and the remedy of every error of a server, its store and its model.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bellwether_remedy::{ErrorClass, Remedy};

use crate::model::RestoreError;
#[cfg(feature = "tls")]
use crate::server::TlsError;
use crate::server::{BackupError, StartError, StopReason};
use crate::store::StoreError;
use ErrorClass::{Closed, Conflict, Contended, Failed, Invalid, Unreadable};

macro_rules! check {
    ($($error:expr => $class:expr, $remedy:ident;)+) => {$(
        let error = $error;
        let expected = ($class, Remedy::$remedy, Remedy::$remedy == Remedy::Retry);
        assert_eq!((error.class(), error.remedy(), error.is_retryable()), expected, "{error:?}");
    )+};
}

fn path() -> PathBuf {
    "data".into()
}

fn failed() -> io::Error {
    io::ErrorKind::Other.into()
}

fn locked() -> StoreError {
    StoreError::Locked { dir: path(), holder: None }
}

#[test]
fn every_error_of_a_store_has_its_class_and_its_remedy() {
    let (doing, row) = ("writing", || "nodes".to_owned());
    check! {
        locked() => Contended, Retry;
        StoreError::Foreign { path: path(), found: row() } => Invalid, FixInput;
        StoreError::Format { file: path(), found: 2, known: 1 } => Unreadable, GiveUp;
        StoreError::Corrupt { file: path(), row: row(), source: "why".into() } => Unreadable, GiveUp;
        StoreError::Full { file: path(), doing, source: failed() } => Conflict, FixInput;
        StoreError::Io { path: path(), doing, source: failed() } => Failed, GiveUp;
        StoreError::Database { file: path(), doing, source: "why".into() } => Failed, GiveUp;
        StoreError::Exists { path: path() } => Conflict, FixInput;
        StoreError::Failed { file: path() } => Closed, GiveUp;
        RestoreError::Path { path: row() } => Unreadable, GiveUp;
        RestoreError::Orphan { path: row() } => Unreadable, GiveUp;
        RestoreError::Ownerless { path: row() } => Unreadable, GiveUp;
    }
}

#[test]
fn every_error_of_a_server_has_its_class_and_its_remedy() {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 2181));
    let listen = |kind: io::ErrorKind| StartError::Listen { address, source: kind.into() };
    check! {
        listen(io::ErrorKind::AddrInUse) => Contended, Retry;
        listen(io::ErrorKind::AddrNotAvailable) => Invalid, FixInput;
        listen(io::ErrorKind::PermissionDenied) => Invalid, FixInput;
        listen(io::ErrorKind::Other) => Failed, GiveUp;
        StartError::Exposed(address) => Invalid, FixInput;
        StartError::Store(locked()) => Contended, Retry;
        StartError::Restore(RestoreError::Orphan { path: "/a/b".to_owned() }) => Unreadable, GiveUp;
        StartError::Tick(Duration::ZERO) => Invalid, FixInput;
        StartError::Limit("connections") => Invalid, FixInput;
        StartError::SessionBounds { shortest: Duration::from_secs(2), longest: Duration::from_secs(1) } => Invalid, FixInput;
        StartError::Thread(failed()) => Failed, GiveUp;
        StartError::Panicked => Failed, GiveUp;
        StopReason::Commit(Arc::new(locked())) => Failed, GiveUp;
        StopReason::Panicked => Failed, GiveUp;
        BackupError::Stopped => Closed, GiveUp;
        BackupError::Store(StoreError::Exists { path: path() }) => Conflict, FixInput;
        BackupError::Panicked => Failed, GiveUp;
    }
}

#[cfg(feature = "tls")]
#[test]
fn every_error_of_tls_is_invalid_input() {
    check! {
        TlsError::Pem { path: path(), source: "why".into() } => Invalid, FixInput;
        TlsError::Empty { path: path() } => Invalid, FixInput;
        TlsError::Unfit("why".into()) => Invalid, FixInput;
        TlsError::Verifier("why".into()) => Invalid, FixInput;
        StartError::Tls(TlsError::Empty { path: path() }) => Invalid, FixInput;
    }
}

//! The client certificate of a connection.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustls::ServerConnection;
use rustls::pki_types::CertificateDer;

use crate::access::SubjectName;
use crate::tls::LoadedTls;

/// As often as the files are read again. So an expired certificate is refused as soon as a removed token.
const VERIFY_EVERY: Duration = Duration::from_secs(5);

/// A client certificate that the handshake has verified. A handle, cheap to clone.
#[derive(Clone)]
pub(crate) struct ClientCertificate(Arc<Verified>);

struct Verified {
    /// The client's own certificate first.
    chain: Box<[CertificateDer<'static>]>,
    names: Box<[SubjectName]>,
    tls: LoadedTls,
    last: Mutex<Instant>,
}

impl ClientCertificate {
    /// Returns the certificate of a connection after its handshake.
    pub(crate) fn of(connection: &ServerConnection, tls: &LoadedTls) -> Option<Self> {
        let chain = connection.peer_certificates()?.iter().map(|part| part.clone().into_owned());
        let chain = chain.collect::<Box<[_]>>();
        let names = SubjectName::all(chain.first()?);
        Some(Self(Arc::new(Verified { chain, names, tls: tls.clone(), last: Mutex::new(Instant::now()) })))
    }

    /// Returns the names; `None` if the certificate is no longer valid.
    pub(super) fn names(&self) -> Option<&[SubjectName]> {
        let Verified { chain, names, tls, last } = &*self.0;
        let is_due = last.lock().unwrap_or_else(PoisonError::into_inner).elapsed() >= VERIFY_EVERY;
        if is_due {
            if !tls.accepts(chain) {
                return None;
            }
            *last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        }
        Some(names)
    }
}

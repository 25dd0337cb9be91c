//! TLS by rustls: versions 1.2 and 1.3, with HTTP/1.1 only; on request with certificates of the clients.
//!
//! A client certificate is verified again while its connection lasts, so that one that has expired, or whose
//! authority was removed, is of no use within seconds. Sessions are not resumed then: a resumed one would skip the
//! verification.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{RootCertStore, ServerConfig};

/// TLS files, all in PEM format. A listener reads them when it starts, and uses changed files within seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    client_ca: Option<PathBuf>,
    client_certificates: ClientCertificates,
}

/// The content of the files of a listener. Clones share it, even after a reload.
#[derive(Clone)]
pub(super) struct LoadedTls {
    current: Arc<RwLock<Arc<Current>>>,
    files: Arc<Tls>,
}

/// What new connections use.
struct Current {
    config: Arc<ServerConfig>,
    certificate: Vec<CertificateDer<'static>>,
    authorities: Vec<CertificateDer<'static>>,
    /// `None`: clients are not asked for a certificate.
    verifier: Option<Arc<dyn ClientCertVerifier>>,
}

/// Whether a client must present a certificate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClientCertificates {
    /// A connection without one fails.
    #[default]
    Required,
    /// A client without one may use a token.
    Optional,
}

impl fmt::Debug for LoadedTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.files.fmt(f)
    }
}

/// Why TLS cannot be used. The text never contains the content of the files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read, or is not PEM.
    #[error("cannot read {what} from {path}: {reason}", path = .path.display())]
    File {
        /// The expected content.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        reason: String,
    },
    /// Certificate and key do not match, or are of an unsupported kind.
    #[error("the certificate and its key cannot be used")]
    Refused(#[source] Box<dyn Error + Send + Sync>),
    /// A certificate is not one of an authority.
    #[error("a certificate in {path} cannot be used as an authority: {reason}", path = .path.display())]
    Authority {
        /// The file.
        path: PathBuf,
        /// The cause.
        reason: String,
    },
}

bellwether_remedy::impl_remedy!(@invalid TlsError);

impl Tls {
    /// Sets the server's certificate, followed by its intermediate certificates, and its private key.
    pub fn new(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self {
            certificate: certificate.into(),
            key: key.into(),
            client_ca: None,
            client_certificates: ClientCertificates::Required,
        }
    }

    /// Verifies client certificates, which must be signed by one of the authorities in this file. The file of tokens gives a
    /// certificate its name and role, see [`Tokens`](super::access::Tokens). Default: clients are not asked for a certificate.
    pub fn client_ca(self, authorities: impl Into<PathBuf>) -> Self {
        Self { client_ca: Some(authorities.into()), ..self }
    }

    /// Sets whether a client must present a certificate. Default [`ClientCertificates::Required`]. Has no effect without
    /// [`client_ca`](Self::client_ca).
    pub fn client_certificates(self, client_certificates: ClientCertificates) -> Self {
        Self { client_certificates, ..self }
    }

    /// Reads the files, as the listener does when it starts.
    ///
    /// # Errors
    /// If a file cannot be read or has other content, if certificate and key do not match, or if a certificate in the file of
    /// client authorities is not one of an authority.
    pub fn check(&self) -> Result<(), TlsError> {
        self.read().map(drop)
    }

    /// Reads the files of a listener that starts.
    pub(super) fn load(self) -> Result<LoadedTls, TlsError> {
        let current = Arc::new(RwLock::new(Arc::new(self.read()?)));
        Ok(LoadedTls { current, files: Arc::new(self) })
    }
}

impl LoadedTls {
    /// Returns the paths of the certificate, of its key, and of the authorities of client certificates.
    pub(super) fn paths(&self) -> String {
        let Tls { certificate, key, client_ca, client_certificates: _ } = &*self.files;
        let paths = [certificate, key].into_iter().chain(client_ca);
        paths.map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
    }

    /// Reads the files again and uses them for new connections. Returns whether a certificate has changed. After an error
    /// the old ones stay in use.
    pub(super) fn reload(&self) -> Result<bool, TlsError> {
        let read = self.files.read()?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let changed = current.certificate != read.certificate || current.authorities != read.authorities;
        if changed {
            *current = Arc::new(read);
        }
        Ok(changed)
    }

    /// Returns the configuration of a new connection.
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current().config)
    }

    /// Whether a new connection with this client certificate would be accepted now.
    pub(super) fn accepts(&self, chain: &[CertificateDer<'_>]) -> bool {
        let current = self.current();
        let (Some(verifier), [own, intermediates @ ..]) = (&current.verifier, chain) else { return false };
        verifier.verify_client_cert(own, intermediates, UnixTime::now()).is_ok()
    }

    fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Tls {
    fn read(&self) -> Result<Current, TlsError> {
        let Self { certificate, key, client_ca, client_certificates } = self;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::Refused(error.into()))?;
        let (authorities, verifier) = match client_ca {
            None => (Vec::new(), None),
            Some(path) => {
                let authorities = chain("a certificate of an authority", path)?;
                let verifier = verifier(&authorities, *client_certificates, provider)
                    .map_err(|reason| TlsError::Authority { path: path.clone(), reason })?;
                (authorities, Some(verifier))
            }
        };
        let config = match &verifier {
            None => config.with_no_client_auth(),
            Some(verifier) => config.with_client_cert_verifier(Arc::clone(verifier)),
        };
        let certificate = chain("a certificate", certificate)?;
        let key = PrivateKeyDer::from_pem_file(key).map_err(told("a private key", key))?;
        let certified = CertifiedKey::from_der(certificate.clone(), key, &aws_lc_rs::default_provider())
            .map_err(|error| TlsError::Refused(error.into()))?;
        let mut config = config.with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        if verifier.is_some() {
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        Ok(Current { config: Arc::new(config), certificate, authorities, verifier })
    }
}

/// Fails with a reason for people.
fn verifier(
    authorities: &[CertificateDer<'static>],
    certificates: ClientCertificates,
    provider: Arc<rustls::crypto::CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority.clone()).map_err(|error| error.to_string())?;
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let verifier = match certificates {
        ClientCertificates::Required => verifier,
        ClientCertificates::Optional => verifier.allow_unauthenticated(),
    };
    verifier.build().map_err(|error| error.to_string())
}

/// Reads one or more certificates.
fn chain(what: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let error = told(what, path);
    let chain = CertificateDer::pem_file_iter(path).map_err(&error)?;
    let chain = chain.collect::<Result<Vec<_>, _>>().map_err(&error)?;
    if chain.is_empty() {
        return Err(error(pem::Error::NoItemsFound));
    }
    Ok(chain)
}

fn told(what: &'static str, path: &Path) -> impl Fn(pem::Error) -> TlsError {
    move |error| {
        let reason = match error {
            pem::Error::Io(error) => error.to_string(),
            pem::Error::NoItemsFound => "the file contains none".to_owned(),
            // The malformed text may be the key, so no part of it is repeated.
            _ => "it is not PEM".to_owned(),
        };
        TlsError::File { what, path: path.to_owned(), reason }
    }
}

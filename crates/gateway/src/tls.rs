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

/// A server's certificate and key, and the authorities of client certificates. Clones share them, even after a reload.
#[derive(Clone)]
pub struct Tls {
    current: Arc<RwLock<Arc<Current>>>,
    files: Arc<Files>,
}

/// What new connections use.
struct Current {
    config: Arc<ServerConfig>,
    certificate: Vec<CertificateDer<'static>>,
    authorities: Vec<CertificateDer<'static>>,
    /// `None`: clients are not asked for a certificate.
    verifier: Option<Arc<dyn ClientCertVerifier>>,
}

struct Files {
    certificate: PathBuf,
    key: PathBuf,
    clients: Option<(PathBuf, ClientCertificates)>,
}

/// Whether a client must present a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientCertificates {
    /// A connection without one fails.
    Required,
    /// A client without one may use a token.
    Optional,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
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
    /// Reads a certificate chain, the server's own certificate first, and its private key, both in PEM format.
    ///
    /// # Errors
    /// If a file cannot be read or has other content, or if certificate and key do not match.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        Self::of(Files { certificate: certificate.into(), key: key.into(), clients: None })
    }

    /// Also verifies client certificates, which must be signed by one of the authorities in this PEM file. The file of tokens
    /// gives a certificate its name and role, see [`Tokens`](super::access::Tokens).
    ///
    /// # Errors
    /// As [`Tls::read`], or if a certificate in the file is not one of an authority.
    pub fn clients(self, authorities: &Path, certificates: ClientCertificates) -> Result<Self, TlsError> {
        let Files { certificate, key, clients: _ } = &*self.files;
        let clients = Some((authorities.into(), certificates));
        Self::of(Files { certificate: certificate.clone(), key: key.clone(), clients })
    }

    fn of(files: Files) -> Result<Self, TlsError> {
        let current = Arc::new(RwLock::new(Arc::new(files.read()?)));
        Ok(Self { current, files: Arc::new(files) })
    }

    /// Returns the paths of the certificate, of its key, and of the authorities of client certificates.
    pub(super) fn paths(&self) -> String {
        let Files { certificate, key, clients } = &*self.files;
        let authorities = clients.as_ref().map(|(authorities, _)| authorities);
        let paths = [certificate, key].into_iter().chain(authorities);
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

impl Files {
    fn read(&self) -> Result<Current, TlsError> {
        let Self { certificate, key, clients } = self;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::Refused(error.into()))?;
        let (authorities, verifier) = match clients {
            None => (Vec::new(), None),
            Some((path, certificates)) => {
                let authorities = chain("a certificate of an authority", path)?;
                let verifier = verifier(&authorities, *certificates, provider)
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

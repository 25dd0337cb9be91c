//! TLS by rustls: versions 1.2 and 1.3, with HTTP/1.1 only.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// A server's certificate and key. Clones share them, also after a reload.
#[derive(Clone)]
pub struct Tls {
    pub(super) config: Arc<ServerConfig>,
    current: Arc<Current>,
    certificate: Arc<Path>,
    key: Arc<Path>,
}

/// The certificate and key for new connections.
#[derive(Debug)]
struct Current(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

/// Why TLS cannot be used. The text never contains the content of the files.
#[derive(Debug, thiserror::Error)]
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
    Refused(#[source] rustls::Error),
}

impl Tls {
    /// Reads a certificate chain, the server's own certificate first, and its private key, both in PEM format.
    ///
    /// # Errors
    /// If a file cannot be read or has other content, or if certificate and key do not match.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let current = Arc::new(Current(RwLock::new(Arc::new(certified(certificate, key)?))));
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Refused)?;
        let mut config = config.with_no_client_auth().with_cert_resolver(Arc::<Current>::clone(&current));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { config: Arc::new(config), current, certificate: certificate.into(), key: key.into() })
    }

    /// Reads the files again and uses them for new connections. Returns whether the certificate has changed. After an error
    /// the old one stays in use.
    pub(super) fn reload(&self) -> Result<bool, TlsError> {
        let read = certified(&self.certificate, &self.key)?;
        let mut current = self.current.0.write().unwrap_or_else(PoisonError::into_inner);
        let changed = current.cert != read.cert;
        if changed {
            *current = Arc::new(read);
        }
        Ok(changed)
    }
}

/// Reads a certificate chain and its key, and checks that they match.
fn certified(certificate: &Path, key: &Path) -> Result<CertifiedKey, TlsError> {
    let (chain_error, key_error) = (told("a certificate", certificate), told("a private key", key));
    let chain = CertificateDer::pem_file_iter(certificate).map_err(&chain_error)?;
    let chain = chain.collect::<Result<Vec<_>, _>>().map_err(&chain_error)?;
    if chain.is_empty() {
        return Err(chain_error(pem::Error::NoItemsFound));
    }
    let key = PrivateKeyDer::from_pem_file(key).map_err(key_error)?;
    CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(TlsError::Refused)
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

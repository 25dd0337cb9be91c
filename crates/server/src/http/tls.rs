//! TLS by rustls: versions 1.2 and 1.3, and no other HTTP than 1.1 inside.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A server's certificate and key.
#[derive(Clone)]
pub struct Tls(pub(super) Arc<ServerConfig>);

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

/// Why there is no TLS. What the files hold is never in the text.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or is not PEM.
    #[error("cannot read {what} from {path}: {reason}", path = .path.display())]
    File {
        /// What it should hold.
        what: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Certificate and key do not fit, or are of a kind that is not supported.
    #[error("the certificate and its key cannot be used")]
    Refused(#[source] rustls::Error),
}

impl Tls {
    /// Reads a chain of certificates, the server's own first, and its private key, both PEM.
    ///
    /// # Errors
    /// When a file cannot be read, holds something else, or the two do not belong together.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let (chain_error, key_error) = (told("a certificate", certificate), told("a private key", key));
        let chain = CertificateDer::pem_file_iter(certificate).map_err(&chain_error)?;
        let chain = chain.collect::<Result<Vec<_>, _>>().map_err(&chain_error)?;
        if chain.is_empty() {
            return Err(chain_error(pem::Error::NoItemsFound));
        }
        let key = PrivateKeyDer::from_pem_file(key).map_err(key_error)?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|config| config.with_no_client_auth().with_single_cert(chain, key))
            .map_err(TlsError::Refused)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(config)))
    }
}

fn told(what: &'static str, path: &Path) -> impl Fn(pem::Error) -> TlsError {
    move |error| {
        let reason = match error {
            pem::Error::Io(error) => error.to_string(),
            pem::Error::NoItemsFound => "there is none in it".to_owned(),
            // What is malformed may be the key: no part of it is repeated.
            _ => "it is not PEM".to_owned(),
        };
        TlsError::File { what, path: path.to_owned(), reason }
    }
}

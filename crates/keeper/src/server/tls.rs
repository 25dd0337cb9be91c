//! TLS in front of the protocol, configured with PEM files.
//!
//! With a client authority, only clients with a certificate signed by it can send a first frame. Certificates are not
//! identities for ACLs: ZooKeeper's `x509` scheme is not supported.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;

/// TLS files, all in PEM format. The server reads them when it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    client_ca: Option<PathBuf>,
}

impl Tls {
    /// Sets the server's certificate, followed by its intermediate certificates, and its private key.
    pub fn new(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self { certificate: certificate.into(), key: key.into(), client_ca: None }
    }

    /// Requires clients to present a certificate that is signed by one of the authorities in this file. Default: clients are
    /// not asked for a certificate.
    pub fn client_ca(self, authorities: impl Into<PathBuf>) -> Self {
        Self { client_ca: Some(authorities.into()), ..self }
    }

    /// Reads the files, as the server does when it starts.
    ///
    /// # Errors
    /// If a file cannot be read or has other content, or if certificate and key do not match.
    pub fn check(&self) -> Result<(), TlsError> {
        Acceptor::new(self).map(drop)
    }

    pub(super) fn has_client_ca(&self) -> bool {
        self.client_ca.is_some()
    }
}

/// The reason why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read, or is not PEM.
    #[error("{} cannot be read as PEM", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A file holds no certificate.
    #[error("{} holds no certificate", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// Certificate and key do not match, or an authority certificate is invalid.
    #[error("the TLS certificate or its key cannot be used")]
    Unfit(#[source] Box<dyn Error + Send + Sync>),
    /// The client authority cannot be used.
    #[error("the TLS client authority cannot be used")]
    Verifier(#[source] Box<dyn Error + Send + Sync>),
}

bellwether_remedy::impl_remedy!(@invalid TlsError);

/// Performs the TLS handshake of accepted sockets.
#[derive(Clone)]
pub(super) struct Acceptor(TlsAcceptor);

impl Acceptor {
    /// Reads the files.
    pub(super) fn new(tls: &Tls) -> Result<Self, TlsError> {
        // The provider is explicit, because other libraries in the process can install another default.
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(unfit)?;
        let builder = match &tls.client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(path)? {
                    roots.add(certificate).map_err(unfit)?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                let verifier = verifier.map_err(|error| TlsError::Verifier(error.into()))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let key = PrivateKeyDer::from_pem_file(&tls.key)
            .map_err(|error| TlsError::Pem { path: tls.key.clone(), source: error.into() })?;
        let config = builder.with_single_cert(certificates(&tls.certificate)?, key).map_err(unfit)?;
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// Performs the handshake. The caller must set a timeout.
    pub(super) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.0.accept(stream).await
    }
}

fn unfit(error: rustls::Error) -> TlsError {
    TlsError::Unfit(error.into())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let failed = |error: pem::Error| TlsError::Pem { path: path.to_owned(), source: error.into() };
    let all: Vec<_> =
        CertificateDer::pem_file_iter(path).map_err(failed)?.collect::<Result<_, _>>().map_err(failed)?;
    match all.is_empty() {
        true => Err(TlsError::Empty { path: path.to_owned() }),
        false => Ok(all),
    }
}

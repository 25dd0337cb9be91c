//! TLS in front of the protocol, from PEM files.
//!
//! With an authority for clients, only who has a certificate of it gets as far as the first frame. Certificates name
//! nobody to the ACLs: ZooKeeper's scheme `x509` is not served.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;

/// Which files to take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    certificates: PathBuf,
    key: PathBuf,
    client_authority: Option<PathBuf>,
}

impl Tls {
    /// The server's certificate, with those between it and its authority behind it, and its private key.
    #[must_use]
    pub fn new(certificates: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self { certificates: certificates.into(), key: key.into(), client_authority: None }
    }

    /// Refuses clients without a certificate of this authority.
    #[must_use]
    pub fn client_authority(mut self, certificates: impl Into<PathBuf>) -> Self {
        self.client_authority = Some(certificates.into());
        self
    }
}

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read, or is not PEM.
    #[error("{} cannot be read as PEM", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: pem::Error,
    },
    /// A file holds no certificate.
    #[error("{} holds no certificate", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// Certificate and key do not fit, or an authority is none.
    #[error("certificate or key cannot be used")]
    Unfit(#[from] rustls::Error),
    /// The authority for clients cannot be used.
    #[error("the authority for clients cannot be used")]
    Verifier(#[from] VerifierBuilderError),
}

/// Turns accepted sockets into streams.
#[derive(Clone)]
pub(super) struct Acceptor(TlsAcceptor);

impl Acceptor {
    /// Reads the files.
    pub(super) fn new(tls: &Tls) -> Result<Self, TlsError> {
        // The provider is named, as a process may hold several libraries that each install theirs.
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let builder = match &tls.client_authority {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(path)? {
                    roots.add(certificate)?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let key = PrivateKeyDer::from_pem_file(&tls.key)
            .map_err(|source| TlsError::Pem { path: tls.key.clone(), source })?;
        let config = builder.with_single_cert(certificates(&tls.certificates)?, key)?;
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// Shakes hands. Bound it by time.
    pub(super) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.0.accept(stream).await
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let failed = |source| TlsError::Pem { path: path.to_owned(), source };
    let all: Vec<_> =
        CertificateDer::pem_file_iter(path).map_err(failed)?.collect::<Result<_, _>>().map_err(failed)?;
    match all.is_empty() {
        true => Err(TlsError::Empty { path: path.to_owned() }),
        false => Ok(all),
    }
}

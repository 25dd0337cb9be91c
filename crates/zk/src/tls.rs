//! TLS to ZooKeeper, by rustls.
//!
//! The client library brings its own set-up of rustls, which asks the process for a provider of cryptography and panics
//! when two are built in and none was named. So ring is named, unless the process has named another.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use zookeeper_client::{Client, Connector, Error, TlsOptions};

/// Whom a connection trusts, and which certificate it shows.
#[derive(Clone)]
pub struct Tls {
    options: TlsOptions,
    /// The same once more, to say why a server was not believed: the library does not.
    config: Arc<ClientConfig>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

/// Why there is no TLS. What the files hold is never in the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or holds something else.
    #[error("cannot read {what} from {path}: {reason}", path = .path.display())]
    File {
        /// What it should hold.
        what: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A certificate and its key do not fit, or are of a kind that is not supported.
    #[error("the client certificate in {certificate} and the key in {key} cannot be used: {reason}", certificate = .certificate.display(), key = .key.display())]
    Identity {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// Why.
        reason: String,
    },
}

impl Tls {
    /// Reads the certificates of the authorities that servers are believed by, and a certificate of our own with its key, for
    /// servers that want one. All PEM.
    ///
    /// # Errors
    /// When a file cannot be read, holds something else, or a certificate and its key do not belong together.
    pub fn read(authorities: &Path, identity: Option<(&Path, &Path)>) -> Result<Self, TlsError> {
        const AUTHORITIES: &str = "the certificates of authorities";
        let pem = text(AUTHORITIES, authorities)?;
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(CertificateDer::pem_slice_iter(pem.as_bytes()).flatten());
        let not_pem = |what, path: &Path| TlsError::File {
            what,
            path: path.to_owned(),
            reason: "there is none in it, as PEM".to_owned(),
        };
        let mut options =
            TlsOptions::new().with_pem_ca(&pem).map_err(|_| not_pem(AUTHORITIES, authorities))?;
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring has all versions")
            .with_root_certificates(roots);
        let config = match identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                const CERTIFICATE: &str = "a client certificate";
                const KEY: &str = "a private key";
                let (chain, secret) = (text(CERTIFICATE, certificate)?, text(KEY, key)?);
                let parsed = CertificateDer::pem_slice_iter(chain.as_bytes()).collect::<Result<Vec<_>, _>>();
                let parsed = parsed.ok().filter(|chain| !chain.is_empty());
                let parsed = parsed.ok_or_else(|| not_pem(CERTIFICATE, certificate))?;
                // Of the error nothing is told: what is malformed may be the key.
                let parsed_key =
                    PrivateKeyDer::from_pem_slice(secret.as_bytes()).map_err(|_| not_pem(KEY, key))?;
                let unfit = |reason: String| TlsError::Identity {
                    certificate: certificate.to_owned(),
                    key: key.to_owned(),
                    reason,
                };
                let unread = |_: Error| unfit("the client library does not read them".to_owned());
                options = options.with_pem_identity(&chain, &secret).map_err(unread)?;
                let config = builder.with_client_auth_cert(parsed, parsed_key);
                config.map_err(|error| unfit(error.to_string()))?
            }
        };
        Ok(Self { options, config: Arc::new(config) })
    }

    /// Connects, and with TLS alone.
    pub(crate) async fn connect(&self, connector: Connector, to: &str) -> Result<Client, Error> {
        if CryptoProvider::get_default().is_none() {
            // Refused only when another was named meanwhile, which serves as well.
            drop(ring::default_provider().install_default());
        }
        connector.with_tls(self.options.clone()).secure_connect(to).await
    }

    /// Why a server has no name that a certificate could be for: the client library panics at such a one.
    pub(crate) fn unnameable(&self, server: &str) -> Option<String> {
        name(server).is_none().then(|| format!("{server}: no certificate can be for such a name"))
    }

    /// Why a server that takes connections is not believed, or does not believe us; `None` when nothing is wrong.
    pub(crate) async fn complaint(&self, server: &str, stream: TcpStream) -> Option<String> {
        let name = name(server)?;
        let connector = TlsConnector::from(Arc::clone(&self.config));
        connector.connect(name, stream).await.err().map(|error| format!("no TLS: {error}"))
    }
}

/// The name that a server's certificate must have.
fn name(server: &str) -> Option<ServerName<'static>> {
    let host = server.rsplit_once(':').map_or(server, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    ServerName::try_from(host.to_owned()).ok()
}

fn text(what: &'static str, path: &Path) -> Result<String, TlsError> {
    std::fs::read_to_string(path).map_err(|error| TlsError::File {
        what,
        path: path.to_owned(),
        reason: error.to_string(),
    })
}

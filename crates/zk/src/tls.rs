//! TLS to ZooKeeper, with rustls.
//!
//! The client library configures rustls with the default cryptography provider of the process, and panics if two
//! providers are built in and none was installed. So this module installs ring, unless the process has installed a
//! provider.

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

/// The certificate authorities that a connection trusts, and its client certificate.
#[derive(Clone)]
pub struct Tls {
    options: TlsOptions,
    /// The same settings again, to find out why a TLS handshake failed: the client library does not report it.
    config: Arc<ClientConfig>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

/// Why TLS cannot be used. The content of the files is never part of the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read, or has other content.
    #[error("cannot read {what} from {path}: {reason}", path = .path.display())]
    File {
        /// The expected content.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A certificate and its key do not match, or have an unsupported type.
    #[error("the client certificate in {certificate} and the key in {key} cannot be used: {reason}", certificate = .certificate.display(), key = .key.display())]
    Identity {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// The reason.
        reason: String,
    },
}

impl Tls {
    /// Reads the certificates of the trusted authorities, and a client certificate with its key for servers that
    /// require one. All files are PEM.
    ///
    /// # Errors
    /// When a file cannot be read or has other content, or when the certificate and the key do not match.
    pub fn read(authorities: &Path, identity: Option<(&Path, &Path)>) -> Result<Self, TlsError> {
        const AUTHORITIES: &str = "the certificates of authorities";
        let pem = text(AUTHORITIES, authorities)?;
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(CertificateDer::pem_slice_iter(pem.as_bytes()).flatten());
        let not_pem = |what, path: &Path| TlsError::File {
            what,
            path: path.to_owned(),
            reason: "the file has none in PEM format".to_owned(),
        };
        let mut options =
            TlsOptions::new().with_pem_ca(&pem).map_err(|_| not_pem(AUTHORITIES, authorities))?;
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring supports all protocol versions")
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
                // The parser's error is dropped, because it could contain parts of the key.
                let parsed_key =
                    PrivateKeyDer::from_pem_slice(secret.as_bytes()).map_err(|_| not_pem(KEY, key))?;
                let unfit = |reason: String| TlsError::Identity {
                    certificate: certificate.to_owned(),
                    key: key.to_owned(),
                    reason,
                };
                let unread = |_: Error| unfit("the client library cannot read them".to_owned());
                options = options.with_pem_identity(&chain, &secret).map_err(unread)?;
                let config = builder.with_client_auth_cert(parsed, parsed_key);
                config.map_err(|error| unfit(error.to_string()))?
            }
        };
        Ok(Self { options, config: Arc::new(config) })
    }

    /// Whether the client has a certificate.
    pub(crate) fn has_identity(&self) -> bool {
        self.config.client_auth_cert_resolver.has_certs()
    }

    /// Connects with TLS only.
    pub(crate) async fn connect(&self, connector: Connector, to: &str) -> Result<Client, Error> {
        if CryptoProvider::get_default().is_none() {
            // Fails only if another provider was installed in the meantime, which is fine.
            drop(ring::default_provider().install_default());
        }
        connector.with_tls(self.options.clone()).secure_connect(to).await
    }

    /// Why a server has a name that no certificate can have: the client library panics at such a name.
    pub(crate) fn unnameable(&self, server: &str) -> Option<String> {
        name(server).is_none().then(|| format!("{server}: no certificate can have this name"))
    }

    /// Why the TLS handshake with a reachable server fails, on either side; `None` if it succeeds.
    pub(crate) async fn complaint(&self, server: &str, stream: TcpStream) -> Option<String> {
        let name = name(server)?;
        let connector = TlsConnector::from(Arc::clone(&self.config));
        connector.connect(name, stream).await.err().map(|error| format!("no TLS: {error}"))
    }
}

/// The name that the certificate of a server must have.
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

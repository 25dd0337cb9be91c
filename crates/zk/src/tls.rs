//! TLS to ZooKeeper, with rustls.
//!
//! The client library configures rustls with the default cryptography provider of the process, and panics if two
//! providers are built in and none was installed. So this module installs aws-lc-rs, unless the process has installed a
//! provider.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use zookeeper_client::{Client, Connector, Error, TlsOptions};

/// TLS files of a connection, all in PEM format. They are read once, by the first check of the connection; clones share the content.
#[derive(Clone)]
#[must_use]
pub struct Tls {
    ca: PathBuf,
    /// The certificate and its key.
    identity: Option<(PathBuf, PathBuf)>,
    loaded: Arc<OnceLock<Loaded>>,
}

/// The content of the files.
#[derive(Clone)]
struct Loaded {
    options: TlsOptions,
    /// The same settings again, to find out why a TLS handshake failed: the client library does not report it.
    config: Arc<ClientConfig>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ca, identity, loaded: _ } = self;
        f.debug_struct("Tls").field("ca", ca).field("identity", identity).finish_non_exhaustive()
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

bellwether_core::impl_remedy!(@invalid TlsError);

impl Tls {
    /// Sets the certificates of the authorities of which one must have signed the certificate of a server.
    pub fn ca(authorities: impl Into<PathBuf>) -> Self {
        Self { ca: authorities.into(), identity: None, loaded: Arc::default() }
    }

    /// Sets a client certificate, followed by its intermediate certificates, and its private key, for servers that require one.
    /// Default: none.
    pub fn identity(self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self { identity: Some((certificate.into(), key.into())), loaded: Arc::default(), ..self }
    }

    /// Reads the files, as [`Access::check`](crate::Access::check) does for every client and node before it connects.
    ///
    /// # Errors
    /// If a file cannot be read or has other content, or if the certificate and the key do not match.
    pub fn check(&self) -> Result<(), TlsError> {
        self.loaded().map(drop)
    }

    /// Returns the content of the files. After an error the next call reads them again.
    fn loaded(&self) -> Result<&Loaded, TlsError> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded);
        }
        let loaded = self.load()?;
        Ok(self.loaded.get_or_init(|| loaded))
    }

    fn load(&self) -> Result<Loaded, TlsError> {
        const AUTHORITIES: &str = "the certificates of authorities";
        let Self { ca, identity, loaded: _ } = self;
        let pem = text(AUTHORITIES, ca)?;
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(CertificateDer::pem_slice_iter(pem.as_bytes()).flatten());
        let not_pem = |what, path: &Path| TlsError::File {
            what,
            path: path.to_owned(),
            reason: "the file has none in PEM format".to_owned(),
        };
        let mut options = TlsOptions::new().with_pem_ca(&pem).map_err(|_| not_pem(AUTHORITIES, ca))?;
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("aws-lc-rs supports all protocol versions")
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
                    certificate: certificate.clone(),
                    key: key.clone(),
                    reason,
                };
                let unread = |_: Error| unfit("the client library cannot read them".to_owned());
                options = options.with_pem_identity(&chain, &secret).map_err(unread)?;
                let config = builder.with_client_auth_cert(parsed, parsed_key);
                config.map_err(|error| unfit(error.to_string()))?
            }
        };
        Ok(Loaded { options, config: Arc::new(config) })
    }

    /// Whether the client has a certificate.
    pub(crate) fn has_identity(&self) -> bool {
        self.identity.is_some()
    }

    /// Connects with TLS only.
    pub(crate) async fn connect(&self, connector: Connector, to: &str) -> Result<Client, Error> {
        if CryptoProvider::get_default().is_none() {
            // Fails only if another provider was installed in the meantime, which is fine.
            drop(aws_lc_rs::default_provider().install_default());
        }
        // A connection is checked first, so the files have been read.
        let loaded = self.loaded().map_err(|_| Error::BadArguments(&"the TLS files cannot be used"))?;
        connector.with_tls(loaded.options.clone()).secure_connect(to).await
    }

    /// Why a server has a name that no certificate can have: the client library panics at such a name.
    pub(crate) fn unnameable(&self, server: &str) -> Option<String> {
        name(server).is_none().then(|| format!("{server}: no certificate can have this name"))
    }

    /// Why the TLS handshake with a reachable server fails, on either side; `None` if it succeeds.
    pub(crate) async fn complaint(&self, server: &str, stream: TcpStream) -> Option<String> {
        let name = name(server)?;
        let config = match self.loaded() {
            Ok(Loaded { config, .. }) => Arc::clone(config),
            Err(error) => return Some(format!("no TLS: {error}")),
        };
        let connector = TlsConnector::from(config);
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

#[cfg(test)]
mod tests {
    use std::fs;

    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
    use rustls::ServerConfig;
    use tempfile::TempDir;
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;
    use zookeeper_client::AuthId;

    use super::*;
    use crate::access::{Access, Scheme};

    type Issuer = CertifiedIssuer<'static, KeyPair>;

    /// A directory with an authority, and a certificate of it for 127.0.0.1 with its key.
    struct CertificateFiles {
        folder: TempDir,
        authority: Issuer,
    }

    impl CertificateFiles {
        fn new() -> Self {
            let mut params = CertificateParams::new(vec![]).unwrap();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let authority = Issuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
            let files = Self { folder: tempfile::tempdir().unwrap(), authority };
            let key = KeyPair::generate().unwrap();
            let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
            let certificate = params.signed_by(&key, &files.authority).unwrap();
            files.write("authority.pem", &files.authority.pem());
            files.write("some.pem", &certificate.pem());
            files.write("some.key", &key.serialize_pem());
            files
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        fn write(&self, name: &str, text: &str) {
            fs::write(self.path(name), text).unwrap();
        }

        fn tls(&self) -> Tls {
            Tls::ca(self.path("authority.pem"))
        }

        fn with_identity(&self, certificate: &str, key: &str) -> Tls {
            self.tls().identity(self.path(certificate), self.path(key))
        }

        /// A server's side of a handshake.
        fn acceptor(&self) -> TlsAcceptor {
            let chain = vec![CertificateDer::from_pem_file(self.path("some.pem")).unwrap()];
            let key = PrivateKeyDer::from_pem_file(self.path("some.key")).unwrap();
            let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
            let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
            TlsAcceptor::from(Arc::new(builder.with_single_cert(chain, key).unwrap()))
        }
    }

    #[test]
    fn tls_is_no_login_and_does_not_replace_one() {
        let files = CertificateFiles::new();
        let tls = files.tls();
        assert!(!Access::default().tls(tls.clone()).is_login());
        let login = Access::login(Scheme::Digest, "bellwether", "hunter2").tls(tls);
        let far = "192.0.2.1".parse().unwrap();
        assert_eq!((login.is_login(), login.check(&far)), (true, Ok(())), "TLS protects the password");
    }

    /// The server adds the name of the client's certificate to each list.
    #[test]
    fn only_a_session_with_a_certificate_owns_entries_of_certificates() {
        let files = CertificateFiles::new();
        let with = Access::default().tls(files.with_identity("some.pem", "some.key"));
        let without = Access::default().tls(files.tls());
        let may = |access: &Access, scheme| access.may_be_certificate(&AuthId::new(scheme, "CN=client"));
        assert!(may(&with, "x509") && !may(&with, "digest"));
        assert!(!may(&without, "x509") && !may(&without, "digest") && !may(&Access::default(), "x509"));
    }

    #[test]
    fn a_file_that_cannot_be_used_is_named_with_its_purpose() {
        let files = CertificateFiles::new();
        let to = "127.0.0.1".parse().unwrap();
        let refused = |certificate, key| {
            let tls = files.with_identity(certificate, key);
            let access = Access::default().tls(tls.clone()).check(&to).unwrap_err().to_string();
            assert_eq!(access, tls.check().unwrap_err().to_string());
            access
        };
        assert!(refused("absent.pem", "some.key").starts_with("cannot read a client certificate from "));
        assert!(refused("some.pem", "absent.key").starts_with("cannot read a private key from "));
        let said = refused("some.key", "some.key");
        assert!(
            said.starts_with("cannot read a client certificate") && said.ends_with("none in PEM format"),
            "{said}"
        );
        let other = CertificateFiles::new();
        fs::copy(other.path("some.key"), files.path("other.key")).unwrap();
        let said = refused("some.pem", "other.key");
        assert!(said.contains("cannot be used"), "{said}");
    }

    #[test]
    fn files_are_read_once_and_again_after_an_error() {
        let files = CertificateFiles::new();
        let tls = files.with_identity("some.pem", "late.key");
        let clone = tls.clone();
        tls.check().unwrap_err();
        fs::copy(files.path("some.key"), files.path("late.key")).unwrap();
        tls.check().unwrap();
        fs::remove_file(files.path("late.key")).unwrap();
        assert_eq!(clone.check(), Ok(()), "clones share the content");
        files.with_identity("some.pem", "late.key").check().unwrap_err();
    }

    #[test]
    fn a_server_whose_name_no_certificate_can_have_is_refused_before_a_connection() {
        let files = CertificateFiles::new();
        let access = Access::default().tls(files.tls());
        let refused = "no_such..name:2181: no certificate can have this name".to_owned();
        assert_eq!(access.unnameable("no_such..name:2181"), Some(refused));
        for server in ["127.0.0.1:2181", "[::1]:2181", "zookeeper.example:2181"] {
            assert_eq!(access.unnameable(server), None, "{server}");
        }
        assert_eq!(Access::default().unnameable("no_such..name:2181"), None, "without TLS");
    }

    #[tokio::test]
    async fn a_handshake_fails_with_its_reason_unless_the_authority_is_trusted() {
        let (files, stranger) = (CertificateFiles::new(), CertificateFiles::new());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = listener.local_addr().unwrap().to_string();
        for (trusted, access) in [(true, files.tls()), (false, stranger.tls())] {
            let access = Access::default().tls(access);
            let acceptor = files.acceptor();
            let accept = async { acceptor.accept(listener.accept().await.unwrap().0).await };
            let complain = async {
                let stream = TcpStream::connect(&server).await.unwrap();
                access.complaint(&server, stream).await
            };
            let (accepted, complaint) = tokio::join!(accept, complain);
            assert_eq!((accepted.is_ok(), complaint.is_none()), (trusted, trusted), "{complaint:?}");
            if let Some(complaint) = complaint {
                assert!(complaint.starts_with("no TLS: invalid peer certificate"), "{complaint}");
            }
        }
    }
}

//! Certificates of clients and of a gateway, and connections with them.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bellwether_gateway::tls::{ClientCertificates, Tls};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::ask::{Answer, Ask, exchange};

pub(crate) type Authority = CertifiedIssuer<'static, KeyPair>;

pub(crate) fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// What a client presents.
pub(crate) struct Certificate {
    certificate: rcgen::Certificate,
    key: KeyPair,
}

impl Certificate {
    /// A certificate with this URI or DNS name, which names `admin` as its Common Name.
    pub(crate) fn new(authority: &Authority, name: &str) -> Self {
        Self::with(authority, name, |_| {})
    }

    pub(crate) fn with(
        authority: &Authority,
        name: &str,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.distinguished_name.push(DnType::CommonName, "admin");
        params.subject_alt_names.push(match name.contains("://") {
            true => SanType::URI(name.try_into().unwrap()),
            false => SanType::DnsName(name.try_into().unwrap()),
        });
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        Self { certificate: params.signed_by(&key, authority).unwrap(), key }
    }

    /// A certificate that expires after this time.
    pub(crate) fn valid_for(authority: &Authority, name: &str, time: Duration) -> Self {
        let until = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap() + time;
        Self::with(authority, name, |params| params.not_after = rcgen::date_time_ymd(1970, 1, 1) + until)
    }
}

pub(crate) async fn connect(config: Arc<ClientConfig>, to: SocketAddr) -> Option<TlsStream<TcpStream>> {
    let tcp = TcpStream::connect(to).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(config).connect(name, tcp).await.ok()
}

/// The files of a gateway: its certificate, the authorities of its clients, and the token file.
pub(crate) struct CertificateFiles {
    home: tempfile::TempDir,
    own: rcgen::Certificate,
}

impl CertificateFiles {
    pub(crate) fn new(clients: &Authority, lines: &str) -> Self {
        let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let files = Self { home: tempfile::tempdir().unwrap(), own: own.cert };
        files.write("cert.pem", &files.own.pem());
        files.write("key.pem", &own.signing_key.serialize_pem());
        files.write("clients.pem", &clients.pem());
        files.write("tokens", lines);
        files
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn tls(&self, clients: ClientCertificates) -> Tls {
        let tls = Tls::new(self.path("cert.pem"), self.path("key.pem"));
        tls.client_ca(self.path("clients.pem")).client_certificates(clients)
    }

    /// A client of a gateway with these files. It resumes sessions if the gateway allows it.
    pub(crate) fn config(&self, client: Option<&Certificate>) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.own.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_root_certificates(roots);
        let config = match client {
            None => config.with_no_client_auth(),
            Some(Certificate { certificate, key }) => {
                let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
                config.with_client_auth_cert(vec![certificate.der().clone()], key).unwrap()
            }
        };
        Arc::new(config)
    }

    /// Connects to a gateway with these files.
    pub(crate) async fn connect(
        &self,
        to: SocketAddr,
        client: Option<&Certificate>,
    ) -> Option<TlsStream<TcpStream>> {
        connect(self.config(client), to).await
    }

    /// Sends a request; `None` if the handshake fails. In TLS 1.3 a client learns that only when it reads.
    pub(crate) async fn ask(&self, to: SocketAddr, client: Option<&Certificate>, ask: Ask) -> Option<Answer> {
        exchange(self.connect(to, client).await?, &ask.text()).await
    }
}

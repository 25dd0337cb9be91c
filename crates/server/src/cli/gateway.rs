//! Gateway options of a node, and `bellwether token`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use bellwether::Client;
use bellwether_gateway::access::{Issued, Jwt, JwtSettings, ROLE_CLAIM, Role, Tokens};
use bellwether_gateway::tls::{ClientCertificates, Tls};
use bellwether_gateway::{
    AuditFile, Auditing, DEFAULT_ADDRESS, Gateway, GatewayBuilder, GatewayError, Protection,
};
use clap::{Args, Subcommand};
use serde_json::json;

use super::exit::{Failure, chain};
use super::gateway_limits::LimitOptions;
use super::output::{Format, Output};

/// Options of a node with the role `gateway`.
#[derive(Debug, Args)]
pub(crate) struct HttpOptions {
    /// Address that the gateway listens on. An address that other machines can reach requires TLS and tokens [default:
    /// 127.0.0.1:8080; for `dev`, any free port if that is in use].
    #[arg(long, value_name = "ADDR")]
    pub(crate) http_listen: Option<SocketAddr>,
    /// Whether to listen on any free port if the address is in use.
    #[arg(skip)]
    pub(crate) any_port: bool,
    /// Whether an open namespace is intended.
    #[arg(skip)]
    pub(crate) open_namespace: bool,
    /// File with tokens, their roles and scopes, one line per token as printed by `bellwether token new`. A changed file is
    /// used within seconds. Without it every caller may do everything.
    #[arg(long, value_name = "FILE")]
    http_tokens: Option<PathBuf>,
    /// Accept tokens of this OpenID Connect provider: the claim `iss` of each token. Needs --http-jwt-audience and
    /// --http-jwt-jwks.
    #[arg(long, value_name = "URL")]
    http_jwt_issuer: Option<String>,
    /// The name that the claim `aud` of each token must be or contain.
    #[arg(long, value_name = "NAME")]
    http_jwt_audience: Option<String>,
    /// File with the provider's public keys: a JWK set. A changed file is used within seconds; the gateway does not contact the
    /// provider.
    #[arg(long, value_name = "FILE")]
    http_jwt_jwks: Option<PathBuf>,
    /// The claim with the role of a token.
    #[arg(long, value_name = "NAME", default_value = ROLE_CLAIM)]
    http_jwt_role_claim: String,
    /// Serve HTTPS with this certificate chain, in PEM format.
    #[arg(long, value_name = "FILE")]
    http_tls_cert: Option<PathBuf>,
    /// Private key of the first certificate, in PEM format.
    #[arg(long, value_name = "FILE")]
    http_tls_key: Option<PathBuf>,
    /// Require a client certificate that is signed by one of the authorities in this PEM file. The file of --http-tokens gives
    /// certificates names and roles by lines such as `ci submit dns:ci.example.org`. A changed file is used within seconds.
    #[arg(long, value_name = "FILE")]
    http_tls_client_ca: Option<PathBuf>,
    /// Also accept clients without a certificate, which then need a token.
    #[arg(long)]
    http_tls_client_cert_optional: bool,
    /// File to which audit lines are appended, one JSON document per line, whatever the level of the log. It is created for
    /// its owner only.
    #[arg(long, value_name = "FILE")]
    http_audit_file: Option<PathBuf>,
    /// Refuse requests that may change something with 503 while the audit file cannot be written. Each of them then has a line
    /// before the change, and one after it.
    #[arg(long)]
    http_audit_required: bool,
    /// Also write audit lines for reads of payloads and results, and for refused reads.
    #[arg(long)]
    http_audit_reads: bool,
    /// Addresses of proxies whose header X-Forwarded-For names the caller, for audit lines and limits.
    #[arg(long, value_name = "ADDR,…", value_delimiter = ',')]
    http_trusted_proxies: Vec<IpAddr>,
    /// Listen on an address that other machines can reach although TLS or tokens are missing, including --metrics-listen. Use
    /// it only if something else protects the node.
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Serve the metrics of --metrics-listen without TLS and tokens, even on an address that other machines can reach. Use
    /// it only if something else protects them.
    #[arg(long)]
    metrics_insecure: bool,
    #[command(flatten)]
    limits: LimitOptions,
}

/// Returns the failure of an error, with the options that it is about.
pub(crate) fn with_options(error: GatewayError) -> Failure {
    let options = match &error {
        GatewayError::Exposed { .. } => "--http-tokens, --http-tls-cert, --http-tls-key, --insecure",
        GatewayError::Tls(_) => "--http-tls-cert, --http-tls-key, --http-tls-client-ca",
        GatewayError::Listen { .. } => "--http-listen",
        _ => return Failure::of(&error, chain(&error)),
    };
    Failure::of(&error, format!("{} ({options})", chain(&error)))
}

impl HttpOptions {
    /// Checks the options, and returns what builds the gateway of a client. Nothing is connected or listens yet.
    pub(crate) fn checked(&self) -> Result<impl FnOnce(Client) -> GatewayBuilder + use<>, Failure> {
        let limits = self.limits.limits();
        let address = self.http_listen.unwrap_or(DEFAULT_ADDRESS);
        let protection = self.protection()?;
        let auditing = self.auditing()?;
        protection.check(address).map_err(with_options)?;
        let (any_port, open_namespace) = (self.any_port, self.open_namespace);
        let proxies = self.http_trusted_proxies.clone();
        Ok(move |client| {
            Gateway::builder(client)
                .listen(address)
                .any_port(any_port)
                .open_namespace(open_namespace)
                .protection(protection)
                .trusted_proxies(proxies)
                .auditing(auditing)
                .limits(limits)
        })
    }
}

impl HttpOptions {
    fn auditing(&self) -> Result<Auditing, Failure> {
        let open = |path: &PathBuf| {
            AuditFile::open(path).map_err(|error| {
                Failure::usage(format!("cannot open the audit file {}: {error}", path.display()))
            })
        };
        let file = self.http_audit_file.as_ref().map(open).transpose()?;
        if file.is_none() && self.http_audit_required {
            return Err(Failure::usage("http_audit_required needs http_audit_file"));
        }
        let auditing = Auditing::default().file(file);
        Ok(auditing.reads(self.http_audit_reads).required(self.http_audit_required))
    }

    /// Combines the options that protect the gateway. Reads the tokens and keys; the gateway reads the TLS files.
    fn protection(&self) -> Result<Protection, Failure> {
        let tokens = self.http_tokens.as_deref().map(Tokens::read).transpose()?;
        let jwt = match (&self.http_jwt_issuer, &self.http_jwt_audience, &self.http_jwt_jwks) {
            (None, None, None) => None,
            (Some(issuer), Some(audience), Some(keys)) => {
                let settings = JwtSettings::new(issuer, audience).role_claim(&self.http_jwt_role_claim);
                Some(Jwt::read(settings, keys)?)
            }
            (_, _, _) => {
                return Err(Failure::usage(
                    "give http_jwt_issuer, http_jwt_audience and http_jwt_jwks, or none of them",
                ));
            }
        };
        let tls = match (&self.http_tls_cert, &self.http_tls_key) {
            (Some(certificate), Some(key)) => Some(Tls::new(certificate, key)),
            // In a file each key is checked alone, so clap cannot check the pair.
            (Some(_), None) | (None, Some(_)) => {
                return Err(Failure::usage("give http_tls_cert and http_tls_key, or neither"));
            }
            (None, None) => None,
        };
        let tls = match (&self.http_tls_client_ca, tls) {
            (None, _) if self.http_tls_client_cert_optional => {
                return Err(Failure::usage("http_tls_client_cert_optional needs http_tls_client_ca"));
            }
            (None, tls) => tls,
            (Some(_), None) => {
                return Err(Failure::usage("http_tls_client_ca needs http_tls_cert and http_tls_key"));
            }
            // Else each certificate of the authority would permit everything.
            (Some(_), Some(_)) if tokens.is_none() && jwt.is_none() => {
                return Err(Failure::usage(
                    "http_tls_client_ca needs http_tokens, which gives certificates their names and roles, or http_jwt_issuer",
                ));
            }
            (Some(authorities), Some(tls)) => {
                let certificates = match self.http_tls_client_cert_optional {
                    true => ClientCertificates::Optional,
                    false => ClientCertificates::Required,
                };
                Some(tls.client_ca(authorities).client_certificates(certificates))
            }
        };
        Ok(Protection::default().tokens(tokens).jwt(jwt).tls(tls).insecure(self.insecure))
    }

    /// The protection of the metrics' own address.
    pub(crate) fn metrics_protection(&self) -> Result<Protection, Failure> {
        match self.metrics_insecure {
            true => Ok(Protection::default().insecure(true)),
            false => self.protection(),
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Token {
    /// Create a token for the HTTP gateway, and its line for the file of --http-tokens.
    ///
    /// The token is printed once and not stored, and ZooKeeper is not contacted. JSON: an object with token and line.
    New {
        /// Name of the token in the gateway's log.
        name: String,
        /// Role of the token: read, submit, operate or admin, of which each includes the ones before it; or work, for remote
        /// workers.
        #[arg(long, default_value = "read")]
        role: Role,
        /// What the token may submit, and until when it is valid: kinds=mail,report.* lanes=eu-* max_priority=5
        /// max_open_jobs=1000 expires=2027-01-01T00:00:00Z, each of which may be left out.
        #[arg(value_name = "KEY=VALUE")]
        scope: Vec<String>,
    },
}

pub(crate) fn run(output: Output, command: Token) -> Result<(), Failure> {
    let Token::New { name, role, scope } = command;
    let issued = Issued::new(&name, role).and_then(|issued| issued.scope(&scope))?;
    match output.format {
        Format::Json => output.json(&json!({ "token": issued.secret, "line": issued.line })),
        Format::Table => output.text(&format!(
            "token  {}\nline   {}\n\nGive the token to its user, and put the line into the file of --http-tokens.",
            issued.secret, issued.line
        )),
    }
}

//! The gateway's options of a node, and `bellwether token`.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::http::access::{Issued, Role, Tokens};
use crate::http::tls::Tls;
use crate::http::{DEFAULT_ADDRESS, Gateway, GatewayBuilder, Limits};
use clap::{Args, Subcommand};
use serde_json::json;

use super::exit::{Failure, chain};
use super::output::{Format, Output};

/// Of a node with the role `gateway`.
#[derive(Debug, Args)]
pub(crate) struct HttpOptions {
    /// Where the gateway listens. Where other machines can reach it, it needs TLS and tokens.
    #[arg(long, value_name = "ADDR", default_value_t = DEFAULT_ADDRESS)]
    pub(crate) http_addr: SocketAddr,
    /// Who may do what: a file of lines as `bellwether token new` prints them. Without it everybody may do everything.
    #[arg(long, value_name = "FILE")]
    http_tokens: Option<PathBuf>,
    /// Serve HTTPS with this chain of certificates, PEM.
    #[arg(long, value_name = "FILE")]
    http_tls_cert: Option<PathBuf>,
    /// The private key of the first certificate, PEM.
    #[arg(long, value_name = "FILE")]
    http_tls_key: Option<PathBuf>,
    /// Listen where other machines can reach it although TLS or tokens are missing: when something else protects it.
    #[arg(long)]
    insecure: bool,
    /// Most open connections; those beyond are answered 503. Each needs a file descriptor, and up to 16 KiB.
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().connections, value_parser = count)]
    http_connections: usize,
    /// Most event streams among them.
    #[arg(long, value_name = "COUNT", default_value_t = Limits::default().streams, value_parser = count)]
    http_streams: usize,
}

fn count(text: &str) -> Result<usize, String> {
    let count = text.parse::<usize>().ok().filter(|count| (1..=1_000_000).contains(count));
    count.ok_or_else(|| "must be 1 to 1000000".to_owned())
}

impl HttpOptions {
    /// Checked; nothing listens yet.
    pub(crate) fn builder(&self) -> Result<GatewayBuilder, Failure> {
        let mut builder = Gateway::builder().listen(self.http_addr).insecure(self.insecure);
        let (connections, streams) = (self.http_connections, self.http_streams);
        builder = builder.limits(Limits { connections, streams, ..Limits::default() });
        if let Some(file) = &self.http_tokens {
            builder = builder.tokens(Tokens::read(file).map_err(|error| Failure::usage(chain(&error)))?);
        }
        match (&self.http_tls_cert, &self.http_tls_key) {
            (Some(certificate), Some(key)) => {
                let tls = Tls::read(certificate, key).map_err(|error| Failure::usage(chain(&error)))?;
                builder = builder.tls(tls);
            }
            // In a file each stands for itself, so it is not clap that can say this.
            (Some(_), None) | (None, Some(_)) => {
                return Err(Failure::usage("give http_tls_cert and http_tls_key, or neither"));
            }
            (None, None) => {}
        }
        builder.check().map_err(|error| Failure::usage(chain(&error)))?;
        Ok(builder)
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Token {
    /// Make a token for the HTTP gateway: it is printed once, with the line for the file of --http-tokens.
    ///
    /// JSON: an object with token and line. Nothing is stored, and ZooKeeper is not asked.
    New {
        /// What the token is called in the gateway's log.
        name: String,
        /// What it may do: read, submit, operate or admin. Each includes those before it.
        #[arg(long, default_value = "read")]
        role: Role,
    },
}

pub(crate) fn run(output: Output, command: Token) -> Result<(), Failure> {
    let Token::New { name, role } = command;
    let issued = Issued::new(&name, role).map_err(|error| Failure::usage(chain(&error)))?;
    match output.format {
        Format::Json => output.json(&json!({ "token": issued.secret, "line": issued.line })),
        Format::Table => output.text(&format!(
            "token  {}\nline   {}\n\nGive the token to its user, and put the line into the file of --http-tokens.",
            issued.secret, issued.line
        )),
    }
}

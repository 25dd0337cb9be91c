//! The HTTP gateway: a namespace for programs that are not Rust, and for people with curl.
//!
//! A [`Gateway`] serves HTTP/1.1 in front of a [`Client`](bellwether::Client) and nothing else: it keeps no state of its own,
//! so any number of them may stand beside each other, and what one of them answered any other may be asked about.
//!
//! ```no_run
//! use bellwether::{Client, http::Gateway};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::connect("zk1:2181,zk2:2181/bellwether/prod").await?;
//! let gateway = Gateway::builder().listen("127.0.0.1:8080".parse()?).start(client).await?;
//! println!("http://{}/docs", gateway.address());
//! # gateway.stop().await;
//! # Ok(()) }
//! ```
//!
//! | folder or file | concern |
//! | --- | --- |
//! | `builder`, `limits`, [`tls`] | what is served where, and its bounds, checked before anything listens |
//! | [`access`] | tokens and roles; who may do what |
//! | `server/` | accepting, TLS, one connection, stopping |
//! | `front/` | what every request passes: its id, audit line, meters, origin, credentials, room, time |
//! | `extract/` | bodies, parameters and ids that are refused with a reason |
//! | `problem` | every error, as `application/problem+json` |
//! | `routes/` | one file per resource; the OpenAPI document is made from them |
//!
//! # What every request passes
//!
//! ```text
//! accept ─ room? ─ TLS ─ headers ≤ 16 KiB in 10 s ─ id, audit, meters ─ framing, origin ─ token ─ room? ─ time ─ role ─ route
//! ```
//!
//! # Lost answers
//!
//! A caller that has no answer may ask again: a job with an id is the same job, a cancel or retry is told as done
//! already. A submission without an id that has no answer may have been accepted: give it an id.

pub mod access;
mod builder;
mod extract;
mod front;
mod limits;
mod problem;
mod routes;
mod server;
mod state;
pub mod tls;

pub use builder::{DEFAULT_ADDRESS, GatewayBuilder, GatewayError};
pub use limits::{Limits, LimitsError};
pub use routes::openapi;
pub use server::Gateway;

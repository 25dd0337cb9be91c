//! A gateway in its own namespace.

use std::net::SocketAddr;
use std::time::Duration;

use bellwether::{Client, Node};
use bellwether_gateway::access::{Issued, Role, Tokens};
use bellwether_gateway::{Gateway, GatewayBuilder};
use bellwether_testkit::namespace;

use crate::ask::{Answer, Ask};

/// Time limit for anything that must happen.
pub(crate) const SOON: Duration = Duration::from_secs(60);

pub(crate) struct Stage {
    pub(crate) gateway: Gateway,
    pub(crate) to: String,
}

impl Stage {
    /// A gateway without tokens, on the loopback interface.
    pub(crate) async fn new(name: &str) -> Self {
        Self::with(name, |builder| builder).await
    }

    pub(crate) async fn with(name: &str, change: impl FnOnce(GatewayBuilder) -> GatewayBuilder) -> Self {
        Self::at(namespace(name), change).await
    }

    /// A gateway of this namespace.
    pub(crate) async fn at(to: String, change: impl FnOnce(GatewayBuilder) -> GatewayBuilder) -> Self {
        let client = Client::connect(&to).await.unwrap();
        let builder = change(Gateway::builder(client).listen("127.0.0.1:0".parse().unwrap()));
        let gateway = builder.start().await.unwrap();
        Self { gateway, to }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.gateway.address()
    }

    /// Starts a node that becomes leader and runs the built-in handlers.
    pub(crate) async fn node(&self) -> Node {
        let handlers = bellwether_server::builtin::handlers(Default::default());
        Node::builder(&self.to).handlers(handlers).slots(8).start().await.unwrap()
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        Ask::get(path).of(self.address()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &str) -> Answer {
        Ask::post(path, body).of(self.address()).await
    }
}

/// A token of each role, and the token file.
pub(crate) struct Secrets {
    pub(crate) tokens: Tokens,
    issued: Vec<(Role, Issued)>,
}

impl Secrets {
    pub(crate) fn new() -> Self {
        let issued = Role::ALL.map(|role| (role, Issued::new(role.as_str(), role).unwrap()));
        let lines = issued.iter().map(|(_, issued)| issued.line.clone()).collect::<Vec<_>>();
        let tokens = Tokens::parse(&lines.join("\n"), std::path::Path::new("tokens")).unwrap();
        Self { tokens, issued: issued.into() }
    }

    pub(crate) fn of(&self, role: Role) -> &str {
        &self.issued.iter().find(|(of, _)| *of == role).unwrap().1.secret
    }
}

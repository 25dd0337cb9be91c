//! Replaces the module `tls` in a build without the feature: the type has no values.

use tokio::net::TcpStream;
use zookeeper_client::{Client, Connector, Error};

use crate::access::AccessError;

#[derive(Debug, Clone)]
pub(crate) enum Tls {}

impl Tls {
    pub(crate) fn check(&self) -> Result<(), AccessError> {
        match *self {}
    }

    pub(crate) fn has_identity(&self) -> bool {
        match *self {}
    }

    pub(crate) async fn connect(&self, _: Connector, _: &str) -> Result<Client, Error> {
        match *self {}
    }

    pub(crate) fn unnameable(&self, _: &str) -> Option<String> {
        match *self {}
    }

    pub(crate) async fn complaint(&self, _: &str, _: TcpStream) -> Option<String> {
        match *self {}
    }
}

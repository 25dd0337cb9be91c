//! Connects a client from the global options.

use std::time::Duration;

use bellwether::Client;

use super::exit::Failure;
use super::{Global, process};

/// Limits of a command's session timeout. A command is short, and a server that does not answer must be given up on
/// within the command's own deadline.
const SESSION: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

impl Global {
    /// The connect string.
    pub(crate) fn zookeeper(&self) -> Result<&str, Failure> {
        self.zookeeper.as_deref().ok_or_else(|| {
            Failure::usage(
                "no ZooKeeper address: give --zookeeper HOST:PORT[,HOST:PORT…]/CHROOT or set the environment variable \
                 BELLWETHER_ZOOKEEPER",
            )
        })
    }

    /// Connects without creating the namespace, so that a misspelt chroot is rejected.
    pub(crate) async fn reader(&self) -> Result<Client, Failure> {
        self.connect(false).await
    }

    /// Connects and creates the namespace if it does not exist.
    pub(crate) async fn writer(&self) -> Result<Client, Failure> {
        self.connect(true).await
    }

    async fn connect(&self, create: bool) -> Result<Client, Failure> {
        let session = (self.deadline / 2).clamp(SESSION.0, SESSION.1);
        let builder = Client::builder(self.zookeeper()?)
            .access(self.access.access()?)
            .session_timeout(session)
            .deadline(self.deadline)
            .author(&process::user_and_host())
            .create_namespace(create);
        Ok(builder.connect().await?)
    }
}

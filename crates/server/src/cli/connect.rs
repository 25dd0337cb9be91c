//! From the global options to a client.

use std::time::Duration;

use bellwether::Client;

use super::Global;
use super::exit::Failure;

/// Sessions of commands: a command is over soon, and a silent server should be given up on within its timeout.
const SESSION: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

impl Global {
    /// The connect string.
    pub(crate) fn zookeeper(&self) -> Result<&str, Failure> {
        self.zookeeper.as_deref().ok_or_else(|| {
            Failure::usage(
                "say where ZooKeeper is: --zookeeper HOST:PORT[,HOST:PORT…]/CHROOT, or the environment variable \
                 BELLWETHER_ZOOKEEPER",
            )
        })
    }

    /// A client that makes nothing: a misspelt chroot is refused.
    pub(crate) async fn reader(&self) -> Result<Client, Failure> {
        self.connect(false).await
    }

    /// A client that makes its namespace when it is absent.
    pub(crate) async fn writer(&self) -> Result<Client, Failure> {
        self.connect(true).await
    }

    async fn connect(&self, create: bool) -> Result<Client, Failure> {
        let session = (self.timeout / 2).clamp(SESSION.0, SESSION.1);
        let builder = Client::builder()
            .access(self.access.access()?)
            .session_timeout(session)
            .deadline(self.timeout)
            .create_namespace(create);
        Ok(builder.connect(self.zookeeper()?).await?)
    }
}

//! The ZooKeeper server of a run, as far as it can be observed: its process, if that is on this machine, and its statistics.

use std::fs;
use std::time::Duration;

use bellwether::ConnectString;
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::process;

/// The state of a TCP socket that listens, in `/proc/net/tcp`.
const LISTENING: &str = "0A";

/// A server answers a four-letter word immediately.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

pub(super) struct Server {
    address: String,
    pid: Option<String>,
}

/// What a server holds.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Held {
    /// Znodes, from `srvr`; `None` if the server does not answer it.
    pub znodes: Option<u64>,
    /// Bytes of paths and data, from `mntr`; `None` if the server does not allow it.
    pub data_bytes: Option<u64>,
}

impl Server {
    /// Finds the first server of a connect string.
    pub(super) fn find(zookeeper: &ConnectString) -> Self {
        let address = zookeeper.servers().first().map(ToString::to_string).unwrap_or_default();
        let pid = loopback_port(&address).and_then(listener);
        Self { address, pid }
    }

    /// Returns the processor time of its process.
    pub(super) fn cpu(&self) -> Option<Duration> {
        process::cpu(self.pid.as_deref()?).ok()
    }

    /// Returns the resident memory of its process.
    pub(super) fn bytes(&self) -> Option<u64> {
        process::bytes(self.pid.as_deref()?).ok()
    }

    pub(super) async fn held(&self) -> Held {
        let field = |text: Option<String>, name: &str| {
            let value = text?.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned))?;
            value.trim().parse().ok()
        };
        Held {
            znodes: field(self.ask("srvr").await, "Node count:"),
            data_bytes: field(self.ask("mntr").await, "zk_approximate_data_size"),
        }
    }

    async fn ask(&self, word: &str) -> Option<String> {
        let answer = async {
            let mut stream = TcpStream::connect(&self.address).await.ok()?;
            stream.write_all(word.as_bytes()).await.ok()?;
            let mut text = String::new();
            stream.read_to_string(&mut text).await.ok()?;
            Some(text)
        };
        timeout(ANSWER_WITHIN, answer).await.ok().flatten()
    }
}

/// Returns the port of an address of this machine.
fn loopback_port(address: &str) -> Option<u16> {
    let (host, port) = address.rsplit_once(':')?;
    let local = matches!(host, "127.0.0.1" | "localhost" | "[::1]");
    local.then(|| port.parse().ok()).flatten()
}

/// Returns the process that listens on a port, if this user may see its descriptors.
fn listener(port: u16) -> Option<String> {
    let sockets =
        ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| fs::read_to_string(table).unwrap_or_default());
    let inode = sockets.iter().flat_map(|table| table.lines()).find_map(|line| socket(line, port))?;
    let link = format!("socket:[{inode}]");
    let processes =
        fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut processes = processes.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    processes.find(|pid| {
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let mut targets = descriptors.filter_map(|descriptor| fs::read_link(descriptor.path()).ok());
        targets.any(|target| target.as_os_str() == link.as_str())
    })
}

/// Returns the inode of a line of `/proc/net/tcp` whose socket listens on the port.
fn socket(line: &str, port: u16) -> Option<&str> {
    let fields = line.split_whitespace().collect::<Vec<_>>();
    let [_, local, _, state, _, _, _, _, _, inode, ..] = fields.as_slice() else { return None };
    let (_, hex) = local.rsplit_once(':')?;
    (*state == LISTENING && u16::from_str_radix(hex, 16) == Ok(port)).then_some(*inode)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn the_listener_of_a_port_is_this_process_until_it_closes() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        assert_eq!(loopback_port(&address.to_string()), Some(address.port()));
        assert_eq!(listener(address.port()), Some(std::process::id().to_string()));
        drop(socket);
        assert_eq!(listener(address.port()), None);
    }

    #[test]
    fn a_server_elsewhere_has_no_process_here() {
        assert_eq!(loopback_port("zk1.example.org:2181"), None);
        assert_eq!(loopback_port("[::1]:2181"), Some(2181));
    }
}

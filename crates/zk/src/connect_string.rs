//! `HOST:PORT[,HOST:PORT…][/CHROOT]`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// The ZooKeeper servers, and the chroot of the namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectString {
    servers: Vec<String>,
    chroot: String,
}

/// Why a string is not a connect string.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not HOST:PORT[,HOST:PORT…][/CHROOT]: {reason}")]
pub struct ConnectStringError {
    text: String,
    reason: &'static str,
}

impl ConnectString {
    /// The servers as `host:port`.
    #[must_use]
    pub fn servers(&self) -> &[String] {
        &self.servers
    }

    /// The first server that is not on this machine, by its address: an IP address of the loopback interface, or `localhost`.
    /// Another name is not looked up, because its address may change.
    #[must_use]
    pub fn remote_server(&self) -> Option<&str> {
        let local = |server: &str| {
            let host = server.rsplit_once(':').map_or(server, |(host, _port)| host);
            let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
            address.map_or(host.eq_ignore_ascii_case("localhost"), |ip| ip.to_canonical().is_loopback())
        };
        self.servers.iter().find(|server| !local(server)).map(String::as_str)
    }

    /// The chroot: `/` or an absolute path without a trailing slash.
    #[must_use]
    pub fn chroot(&self) -> &str {
        &self.chroot
    }
}

impl FromStr for ConnectString {
    type Err = ConnectStringError;

    fn from_str(text: &str) -> Result<Self, ConnectStringError> {
        let refuse = |reason| ConnectStringError { text: text.to_owned(), reason };
        let (hosts, chroot) = match text.find('/') {
            Some(at) => text.split_at(at),
            None => (text, "/"),
        };
        let servers = hosts
            .split(',')
            .map(|host| server(host).ok_or_else(|| refuse("a server is not HOST or HOST:PORT")));
        let servers = servers.collect::<Result<Vec<_>, _>>()?;
        let well_formed = chroot == "/"
            || chroot[1..].split('/').all(|part| {
                !part.is_empty() && part != "." && part != ".." && !part.chars().any(|c| c.is_control())
            });
        if !well_formed {
            return Err(refuse("the chroot has an empty, relative or unprintable part, or ends in '/'"));
        }
        if chroot == "/zookeeper" || chroot.starts_with("/zookeeper/") {
            return Err(refuse("/zookeeper belongs to ZooKeeper itself"));
        }
        Ok(Self { servers, chroot: chroot.to_owned() })
    }
}

/// `host:port`, with ZooKeeper's default port filled in.
fn server(text: &str) -> Option<String> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !host.ends_with(':') => (host, port.parse::<u16>().ok()?),
        Some(_) => return None,
        None => (text, 2181),
    };
    let plain = !host.is_empty() && host.bytes().all(|b| b.is_ascii_graphic() && b != b'/');
    (plain && port != 0).then(|| format!("{host}:{port}"))
}

impl fmt::Display for ConnectString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.servers.join(","), self.chroot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, String> {
        text.parse::<ConnectString>().map(|read| read.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn servers_ports_and_chroot_are_parsed() {
        assert_eq!(read("zk1:2181,zk2:2182/bellwether/prod").unwrap(), "zk1:2181,zk2:2182/bellwether/prod");
        assert_eq!(read("localhost").unwrap(), "localhost:2181/");
        assert_eq!(read("[::1]:2181/a").unwrap(), "[::1]:2181/a");
    }

    #[test]
    fn an_invalid_connect_string_is_refused_with_a_reason() {
        for (text, reason) in [
            ("", "a server is not"),
            ("zk1:2181,", "a server is not"),
            ("zk1:0", "a server is not"),
            ("zk1:port", "a server is not"),
            ("::1", "a server is not"),
            ("z k:2181", "a server is not"),
            ("zk1:2181/a/", "ends in '/'"),
            ("zk1:2181//a", "empty"),
            ("zk1:2181/../a", "relative"),
            ("zk1:2181/zookeeper", "belongs to ZooKeeper"),
        ] {
            assert!(read(text).unwrap_err().contains(reason), "{text}: {:?}", read(text));
        }
    }

    #[test]
    fn a_server_is_on_this_machine_only_by_its_loopback_address_or_as_localhost() {
        let remote = |text: &str| text.parse::<ConnectString>().unwrap().remote_server().map(str::to_owned);
        for local in ["127.0.0.1:2181,127.8.8.8", "[::1]:2181/a", "LocalHost", "[::ffff:127.0.0.1]:1"] {
            assert_eq!(remote(local), None, "{local}");
        }
        for (text, server) in [
            ("localhost,zk2:1", "zk2:1"),
            ("192.0.2.1/127.0.0.1", "192.0.2.1:2181"),
            ("localhost.example", "localhost.example:2181"),
            ("[::]:1", "[::]:1"),
            ("0.0.0.0", "0.0.0.0:2181"),
            ("127.0.0.1.example:1", "127.0.0.1.example:1"),
        ] {
            assert_eq!(remote(text).as_deref(), Some(server), "{text}");
        }
    }

    #[test]
    fn the_chroot_of_a_connect_string_is_the_root_unless_one_is_given() {
        let chroot = |text: &str| text.parse::<ConnectString>().map(|to| to.chroot().to_owned()).unwrap();
        assert_eq!((chroot("zk1:2181/a/b"), chroot("zk1:2181")), ("/a/b".to_owned(), "/".to_owned()));
    }
}

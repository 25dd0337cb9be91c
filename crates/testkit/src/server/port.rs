//! Chooses a port that a restarted server can use again.

use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::{Mutex, PoisonError};

/// Below Linux's ephemeral range (from 32768). While the server is down, a port in that range can become the *source*
/// port of any outgoing connection. A client that reconnects in a loop could then even connect to itself.
const FIRST: u16 = 12_000;
const COUNT: u16 = 20_000;

/// The ports that this process has chosen. A UDP socket of the same number reserves each port until the process ends. A TCP socket
/// cannot reserve it, because the server must bind a TCP socket to it.
static RESERVED: Mutex<Vec<UdpSocket>> = Mutex::new(Vec::new());

/// Returns an address of 127.0.0.1 that is free at this moment. No other call returns it while this process lives.
pub fn unused() -> io::Result<SocketAddr> {
    let seed = RandomState::new().hash_one(std::process::id());
    let start = u16::try_from(seed % u64::from(COUNT)).expect("a remainder of a u16 fits a u16");
    let mut taken = io::Error::other("no port tried");
    for step in 0..COUNT {
        let port = FIRST + (start + step) % COUNT;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        match UdpSocket::bind(address)
            .and_then(|reserved| TcpListener::bind(address).map(|_closed_at_once| reserved))
        {
            Ok(reserved) => {
                RESERVED.lock().unwrap_or_else(PoisonError::into_inner).push(reserved);
                return Ok(address);
            }
            Err(error) => taken = error,
        }
    }
    Err(taken)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_calls_return_the_same_address() {
        let addresses = (0..400).map(|_| unused().expect("a free port")).collect::<BTreeSet<_>>();
        assert_eq!(addresses.len(), 400);
    }
}

//! Chooses a port that a restarted server can use again.

use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// Below Linux's ephemeral range (from 32768). While the server is down, a port in that range can become the *source*
/// port of any outgoing connection. A client that reconnects in a loop could then even connect to itself.
const FIRST: u16 = 12_000;
const COUNT: u16 = 20_000;

/// Returns an address of 127.0.0.1 that is free at this moment. Another process can take it before it is used.
pub fn unused() -> io::Result<SocketAddr> {
    let seed = RandomState::new().hash_one(std::process::id());
    let start = u16::try_from(seed % u64::from(COUNT)).expect("a remainder of a u16 fits a u16");
    let mut taken = io::Error::other("no port tried");
    for step in 0..COUNT {
        let port = FIRST + (start + step) % COUNT;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        match TcpListener::bind(address) {
            Ok(_closed_at_once) => return Ok(address),
            Err(error) => taken = error,
        }
    }
    Err(taken)
}

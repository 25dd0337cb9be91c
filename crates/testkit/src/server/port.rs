//! A port for a server that has to come back to it.

use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// Below Linux's ephemeral range (from 32768). A port inside it may become the *source* port of any outgoing
/// connection while the server is down; worse, a client that reconnects in a loop can then connect to itself.
const FIRST: u16 = 12_000;
const COUNT: u16 = 20_000;

/// An address of 127.0.0.1 on which nobody listens at this moment. Somebody else may take it before it is used.
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

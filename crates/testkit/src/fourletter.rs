//! ZooKeeper's four-letter words: the client sends a word, the server replies with text and closes the connection.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A frozen server must not block its test; a healthy one replies within milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// Sends a four-letter word (`srvr`, `mntr`, `wchp`, …) to the server at `address` and returns the reply.
pub fn four_letter_word(address: SocketAddr, word: &str) -> io::Result<String> {
    ask(address, word, PATIENCE)
}

/// As [`four_letter_word`], with a custom timeout.
pub(crate) fn ask(address: SocketAddr, word: &str, patience: Duration) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.write_all(word.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

//! ZooKeeper's four-letter words: a word goes out, text comes back, the server closes.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A frozen server must not hang its test; a healthy one answers within milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks the server at `address` a four-letter word (`srvr`, `mntr`, `wchp` …) and returns all that it answers.
pub fn four_letter_word(address: SocketAddr, word: &str) -> io::Result<String> {
    ask(address, word, PATIENCE)
}

/// [`four_letter_word`] for a caller that has less patience with a silent server.
pub(crate) fn ask(address: SocketAddr, word: &str, patience: Duration) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.write_all(word.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

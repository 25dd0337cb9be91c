//! Detects when a server has started.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use super::StartError;
use super::config::Home;
use super::process::Guarded;
use super::program::Found;
use crate::fourletter::ask;

/// A start takes 0.3 to 2 s; many concurrent starts on two busy cores took ten times that.
const DEADLINE: Duration = Duration::from_secs(60);
const POLL_EVERY: Duration = Duration::from_millis(20);
/// A starting server accepts some connections and never replies on them: retry instead of waiting.
const PATIENCE: Duration = Duration::from_millis(500);

/// Waits until this process, and not another one, accepts requests on the address.
pub(super) fn wait(process: &mut Guarded, home: &Home) -> Result<(), StartError> {
    let start = Instant::now();
    while !(serves(home.address) && is_ours(home, process)) {
        if let Some(status) = process.try_wait()? {
            return Err(StartError::Exited { status, log: home.log_tail() });
        }
        if start.elapsed() > DEADLINE {
            return Err(StartError::NotReady { after: DEADLINE, log: home.log_tail() });
        }
        thread::sleep(POLL_EVERY);
    }
    Ok(())
}

/// Returns whether the server accepts requests: only then `srvr` contains a mode.
pub(super) fn serves(address: SocketAddr) -> bool {
    ask(address, "srvr", PATIENCE).is_ok_and(|answer| answer.contains("Mode:"))
}

/// Returns whether the reply comes from this process. Another server can take the port between its choice and its use.
fn is_ours(home: &Home, process: &Guarded) -> bool {
    let (word, ours) = match &home.program {
        Found::Keeper(_) => ("envi", format!("process.id={}", process.id())),
        Found::Apache(_) => ("conf", format!("dataDir={}/version-2", home.data.display())),
    };
    ask(home.address, word, PATIENCE).is_ok_and(|answer| answer.lines().any(|line| line == ours))
}

//! When a server counts as started.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use super::StartError;
use super::config::Home;
use super::process::Guarded;
use super::program::Found;
use crate::fourletter::ask;

/// A start takes 0.3–2 s; many at once on two busy cores were seen to take ten times that.
const DEADLINE: Duration = Duration::from_secs(60);
const POLL_EVERY: Duration = Duration::from_millis(20);
/// A starting server accepts some connections and never answers them: ask again rather than wait.
const PATIENCE: Duration = Duration::from_millis(500);

/// Waits until this process, and no other, serves on the address.
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

/// `srvr` names a mode only once the server takes requests; before, it says that it is not serving.
pub(super) fn serves(address: SocketAddr) -> bool {
    ask(address, "srvr", PATIENCE).is_ok_and(|answer| answer.contains("Mode:"))
}

/// Between the choice of a port and its use another server may have taken it, and would answer in our place.
fn is_ours(home: &Home, process: &Guarded) -> bool {
    let (word, ours) = match &home.program {
        Found::Keeper(_) => ("envi", format!("process.id={}", process.id())),
        Found::Apache(_) => ("conf", format!("dataDir={}/version-2", home.data.display())),
    };
    ask(home.address, word, PATIENCE).is_ok_and(|answer| answer.lines().any(|line| line == ours))
}

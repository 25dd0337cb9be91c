//! S5, S6: the clock of trust counts a suspension of the machine, which the timers of the process do not notice.
//!
//! Here the kernel itself moves the clocks, as it does at a suspension: the process enters a time namespace
//! (`time_namespaces(7)`) whose `CLOCK_BOOTTIME` is ahead by a minute, while `CLOCK_MONOTONIC` continues. Only a process with a
//! single thread can do that, so this program has no test harness, and no session, because the client library has a thread.
//! `actors/host/tests/suspension.rs` moves the same clock by a test hook, in a process with a leader and a worker.
//!
//! The right to do that comes from a user namespace. If the machine permits none (a container may not), the program prints that
//! and tests nothing.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test reports by panicking and printing")]

use std::fs::{self, File};
use std::time::{Duration, Instant};

use bellwether_zk::clock::uptime;
use nix::errno::Errno;
use nix::sched::{CloneFlags, setns, unshare};

const TEST: &str = "the_uptime_counts_a_suspension_and_an_instant_does_not";
const SUSPENDED: Duration = Duration::from_secs(60);

fn main() {
    if std::env::args().any(|argument| argument == "--list") {
        return println!("{TEST}: test");
    }
    let (timers, clock) = (Instant::now(), uptime());
    match suspend(SUSPENDED) {
        Ok(()) => {}
        Err(error @ (Errno::EPERM | Errno::ENOSPC | Errno::ENOSYS)) => {
            return println!("test {TEST} ... not run: this machine permits no namespaces: {error}");
        }
        Err(error) => panic!("no time namespace: {error}"),
    }
    let counted = uptime() - clock;
    let noticed = timers.elapsed();
    assert!(noticed < SUSPENDED, "the timers do not count it: {noticed:?}");
    assert!((SUSPENDED..=SUSPENDED + noticed).contains(&counted), "the clock counts it: {counted:?}");
    println!("test {TEST} ... ok");
}

/// Moves the boot-time clock of this process ahead. A new namespace is for the children of the process at first; the process
/// follows after the offset is set.
fn suspend(by: Duration) -> nix::Result<()> {
    let time = CloneFlags::from_bits_retain(nix::libc::CLONE_NEWTIME);
    unshare(CloneFlags::CLONE_NEWUSER | time)?;
    fs::write("/proc/self/timens_offsets", format!("boottime {} 0\n", by.as_secs())).unwrap();
    setns(File::open("/proc/self/ns/time_for_children").unwrap(), time)
}

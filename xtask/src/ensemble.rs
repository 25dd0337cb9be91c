//! A ZooKeeper ensemble for experiments: kill a member, and see what the others and Bellwether do.

use std::io::BufRead as _;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use bellwether_testkit::{Ensemble, EnsembleBuilder, Profile, ZooKeeperServer};

use crate::failure::Failure;
use crate::zookeeper::{TICK_MS, not_started, say};

/// ZooKeeper's usual value.
const SYNC_LIMIT: u32 = 5;
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Runs until Ctrl-C ends this process; the watchdogs then end the members.
pub(crate) fn run(first_port: u16, members: usize) -> Result<(), Failure> {
    let mut watched = Watched::start(builder(members).first_port(first_port))?;
    eprintln!(
        "xtask: the ensemble is ready. Kill a member (kill -9 PID) to see a failover. Enter starts the members"
    );
    eprintln!("xtask: that are down, Ctrl-C ends all. Connect string:");
    say(&watched.ensemble.connect_string());
    let enter = enter();
    loop {
        for change in watched.changes() {
            eprintln!("xtask: {change}");
        }
        match enter.recv_timeout(LOOK_EVERY) {
            Ok(()) => watched.launch_those_down(),
            Err(RecvTimeoutError::Timeout) => {}
            // Standard input has ended.
            Err(RecvTimeoutError::Disconnected) => thread::sleep(LOOK_EVERY),
        }
    }
}

fn builder(members: usize) -> EnsembleBuilder {
    Ensemble::builder(members).sync_limit(SYNC_LIMIT).tick_ms(TICK_MS).profile(Profile::Production)
}

/// An ensemble, and the state of each member that was reported last.
struct Watched {
    ensemble: Ensemble,
    shown: Vec<String>,
}

impl Watched {
    fn start(builder: EnsembleBuilder) -> Result<Self, Failure> {
        let ensemble = builder.try_start().map_err(not_started)?;
        let shown = vec![String::new(); ensemble.members().len()];
        Ok(Self { ensemble, shown })
    }

    /// Returns a line for each member whose state is another one than at the last call.
    fn changes(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        for (index, member) in self.ensemble.members().iter().enumerate() {
            let state = state(member);
            if self.shown[index] != state {
                lines.push(format!("member {} on {} is {state}", index + 1, member.address()));
                self.shown[index] = state;
            }
        }
        lines
    }

    fn launch_those_down(&mut self) {
        for index in 0..self.shown.len() {
            if state(&self.ensemble.members()[index]) == DOWN {
                // It was killed from outside, so its process is reaped first.
                self.ensemble.member(index).kill();
                self.ensemble.member(index).launch();
            }
        }
    }
}

const DOWN: &str = "down";

fn state(member: &ZooKeeperServer) -> String {
    let Ok(answer) = member.four_letter_word("srvr") else { return DOWN.to_owned() };
    let mode = answer.lines().find_map(|line| line.strip_prefix("Mode: "));
    match (mode, member.process_id()) {
        (Some(mode), Some(pid)) => format!("up: {mode}, pid {pid}"),
        (Some(mode), None) => format!("up: {mode}"),
        (None, _) => "up, but does not serve: it has no majority yet".to_owned(),
    }
}

/// Returns a channel that reports each line of standard input.
fn enter() -> mpsc::Receiver<()> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            if line.is_err() || sender.send(()).is_err() {
                return;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use bellwether_testkit::RawClient;
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    use super::*;

    const SOON: Duration = Duration::from_secs(60);

    #[test]
    fn members_serve_after_the_kill_of_their_leader_and_show_it_until_it_is_launched() {
        let mut watched = Watched::start(builder(3)).unwrap();
        until(&mut watched, "each member serves", |shown| {
            shown.iter().all(|state| state.starts_with("up: leader") || state.starts_with("up: follower"))
        });
        assert_eq!(watched.changes(), Vec::<String>::new(), "nothing has changed");
        let leader = watched.ensemble.leader().unwrap();

        let pid = watched.shown[leader].split("pid ").nth(1).unwrap().parse().unwrap();
        kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
        until(&mut watched, "the other members have a leader", |shown| {
            let leads = |state: &&String| state.starts_with("up: leader");
            shown[leader] == DOWN && shown.iter().filter(leads).count() == 1
        });
        let other = &watched.ensemble.members()[(leader + 1) % 3];
        RawClient::connect(other.address()).unwrap().create("/after-the-kill", b"").unwrap();

        watched.launch_those_down();
        until(&mut watched, "the killed member follows", |shown| shown[leader].starts_with("up: follower"));
        let launched = &watched.ensemble.members()[leader];
        assert!(RawClient::connect(launched.address()).unwrap().exists("/after-the-kill").unwrap());
    }

    fn until(watched: &mut Watched, what: &str, holds: impl Fn(&[String]) -> bool) {
        let begun = Instant::now();
        while !holds(&watched.shown) {
            assert!(begun.elapsed() < SOON, "{what}: not within {SOON:?}: {:?}", watched.shown);
            watched.changes();
            thread::sleep(LOOK_EVERY);
        }
    }
}

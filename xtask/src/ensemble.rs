//! A ZooKeeper ensemble for experiments: kill a member, and see what the others and Bellwether do.

use std::io::BufRead as _;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use bellwether_testkit::{Ensemble, Profile, ZooKeeperServer};

use crate::failure::Failure;
use crate::zookeeper::{TICK_MS, not_started, say};

/// ZooKeeper's usual value.
const SYNC_LIMIT: u32 = 5;
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Runs until Ctrl-C ends this process; the watchdogs then end the members.
pub(crate) fn run(first_port: u16, members: usize) -> Result<(), Failure> {
    let builder = Ensemble::builder(members).sync_limit(SYNC_LIMIT).tick_ms(TICK_MS);
    let started = builder.profile(Profile::Production).first_port(first_port).try_start();
    let mut ensemble = started.map_err(not_started)?;
    eprintln!(
        "xtask: the ensemble is ready. Kill a member (kill -9 PID) to see a failover. Enter starts the members"
    );
    eprintln!("xtask: that are down, Ctrl-C ends all. Connect string:");
    say(&ensemble.connect_string());
    let enter = enter();
    let mut shown = vec![String::new(); members];
    loop {
        for (index, shown) in shown.iter_mut().enumerate() {
            let state = state(&ensemble.members()[index]);
            if *shown != state {
                eprintln!(
                    "xtask: member {} on {} is {state}",
                    index + 1,
                    ensemble.members()[index].address()
                );
                *shown = state;
            }
        }
        match enter.recv_timeout(LOOK_EVERY) {
            Ok(()) => {
                for index in 0..members {
                    if state(&ensemble.members()[index]) == DOWN {
                        // It was killed from outside, so its process is reaped first.
                        ensemble.member(index).kill();
                        ensemble.member(index).launch();
                    }
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            // Standard input has ended.
            Err(RecvTimeoutError::Disconnected) => thread::sleep(LOOK_EVERY),
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

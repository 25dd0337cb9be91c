//! The keeper beside the real ZooKeeper, in one run: same machine, same file system, same client, both with fsync.
//!
//! `cargo bench -p bellwether-keeper --bench beside_zookeeper -- [--rounds N] [--seconds N] [--only TEXT]
//! [--keeper-only] [--output json]`
//!
//! Rounds alternate between the servers and the median of each is shown: on a machine that others use, too, the ratio
//! is worth more than either figure, and the processor time that the server took for an operation more than both. (It
//! includes the sweeping up behind a load.) Not a test: figures depend on the machine, and nothing here can fail by being slow.

#![allow(clippy::print_stdout, reason = "figures are its output")]

mod client;
mod loads;
mod report;
mod servers;
mod wire;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};

use crate::client::Client;
use crate::loads::Load;
use crate::report::{Line, Unit};
use crate::servers::{Server, processor_time, resident};

/// For the JVM to compile what it will run.
const WARM_UP: Duration = Duration::from_secs(2);
/// Longer than any restart takes.
const RESTART: Duration = Duration::from_secs(30);

/// The keeper beside the real ZooKeeper.
#[derive(Debug, Parser)]
struct Arguments {
    /// Measurements of each load per server; the median counts.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// How long each measurement lasts.
    #[arg(long, default_value_t = 2)]
    seconds: u64,
    /// Only the loads whose name contains this.
    #[arg(long)]
    only: Option<String>,
    /// Without the real one: for a profiler.
    #[arg(long)]
    keeper_only: bool,
    /// How to print.
    #[arg(long, default_value = "table")]
    output: Output,
    /// What cargo passes to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Output {
    Table,
    Json,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let done = match arguments.next() {
        Some(first) if first == servers::SERVE => serve(arguments.next().as_deref().map(Path::new)),
        Some(_) | None => measure(&Arguments::parse()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("beside_zookeeper: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(dir: Option<&Path>) -> io::Result<()> {
    servers::serve(dir.ok_or_else(|| io::Error::other("no directory"))?)
}

fn measure(arguments: &Arguments) -> io::Result<()> {
    let mut servers: Vec<Box<dyn Server>> = vec![Box::new(servers::Keeper::start()?)];
    if !arguments.keeper_only {
        servers.push(Box::new(servers::zookeeper()?));
    }
    let wanted = |name: &str| arguments.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    let mut lines = Vec::new();
    servers.iter().try_for_each(|server| loads::prepare(server.address()))?;
    for load in Load::ALL.into_iter().filter(|load| wanted(&load.name())) {
        let mut rates = vec![Vec::new(); servers.len()];
        let mut processor = vec![Vec::new(); servers.len()];
        for server in &servers {
            load.measure(server.address(), WARM_UP)?;
        }
        for _ in 0..arguments.rounds {
            for (number, server) in servers.iter().enumerate() {
                let before = processor_time(server.process_id()?)?;
                let measured = load.measure(server.address(), Duration::from_secs(arguments.seconds))?;
                let spent = processor_time(server.process_id()?)?.saturating_sub(before);
                let rate = measured.operations / measured.elapsed.as_secs_f64();
                eprintln!("{}: {}: {rate:.0} per second", load.name(), server.name());
                rates[number].push(rate);
                processor[number].push(spent.as_secs_f64() * 1e6 / measured.operations);
            }
        }
        lines.push(line(load.name(), Unit::PerSecond, rates.into_iter().map(median)));
        lines.push(line(String::new(), Unit::Processor, processor.into_iter().map(median)));
    }
    drop(servers);
    if wanted("memory") {
        let (memory, restart) = with_many_znodes(arguments)?;
        lines.push(line(format!("memory with {} znodes of 200 B", loads::MANY), Unit::Megabytes, memory));
        lines.push(line("kill -9 to first answer, with them".to_owned(), Unit::Milliseconds, restart));
    }
    match arguments.output {
        Output::Table => println!("{}", report::table(&lines)),
        Output::Json => println!("{}", report::json(&lines)),
    }
    Ok(())
}

/// Fresh servers, filled: megabytes resident, and milliseconds from a kill to an answer.
fn with_many_znodes(arguments: &Arguments) -> io::Result<(Vec<f64>, Vec<f64>)> {
    let mut memory = Vec::new();
    let mut restarts = Vec::new();
    let mut servers: Vec<Box<dyn Server>> = vec![Box::new(servers::Keeper::start()?)];
    if !arguments.keeper_only {
        servers.push(Box::new(servers::zookeeper()?));
    }
    for server in &mut servers {
        let last = loads::fill(server.address())?;
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
        let megabytes = resident(server.process_id()?)? as f64 / f64::from(1 << 20);
        eprintln!("memory: {}: {megabytes:.1}", server.name());
        memory.push(megabytes);
        let mut spans = Vec::new();
        for _ in 0..arguments.rounds {
            let begin = Instant::now();
            server.restart()?;
            first_answer(server.address(), &last)?;
            spans.push(begin.elapsed().as_secs_f64() * 1_000.0);
            let spent = processor_time(server.process_id()?)?;
            eprintln!(
                "restart: {}: {:.0}, {spent:?} of them processor time",
                server.name(),
                spans[spans.len() - 1]
            );
        }
        restarts.push(median(spans));
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
        let megabytes = resident(server.process_id()?)? as f64 / f64::from(1 << 20);
        eprintln!("memory after the restart: {}: {megabytes:.1}", server.name());
    }
    Ok((memory, restarts))
}

/// Returns when the server answers what `path` holds.
fn first_answer(server: SocketAddr, path: &str) -> io::Result<()> {
    let by = Instant::now() + RESTART;
    loop {
        match Client::connect(server).and_then(|mut client| client.call(&wire::get_data(path))) {
            Ok(()) => return Ok(()),
            // It is not up yet: connections are refused or closed until it is.
            Err(error) if Instant::now() >= by => return Err(error),
            Err(_) => std::thread::yield_now(),
        }
    }
}

fn line(what: String, unit: Unit, figures: impl IntoIterator<Item = f64>) -> Line {
    let mut figures = figures.into_iter();
    let mut next = || figures.next().unwrap_or(f64::NAN);
    Line { what, unit, keeper: next(), zookeeper: next() }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

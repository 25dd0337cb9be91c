//! Compares the keeper with Apache ZooKeeper in one run: same machine, same file system, same client, both with fsync.
//!
//! `cargo bench -p bellwether-keeper --bench beside_zookeeper -- [--rounds N] [--seconds N] [--only TEXT]
//! [--keeper-only] [--output json]`
//!
//! Rounds alternate between the servers, and the median of each is printed. On a shared machine the ratio is more
//! reliable than either absolute value, and the server's processor time per operation is more reliable than both (it
//! includes the cleanup after a load). This is not a test: the results depend on the machine, and slow results are not
//! failures.

#![allow(clippy::print_stdout, reason = "the results go to stdout")]

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

/// For the JVM to compile the code of the load.
const WARM_UP: Duration = Duration::from_secs(2);
/// Longer than any restart.
const RESTART: Duration = Duration::from_secs(30);

/// Compares the keeper with Apache ZooKeeper.
#[derive(Debug, Parser)]
struct Arguments {
    /// Measurements of each load per server; the median is printed.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Length of each measurement in seconds.
    #[arg(long, default_value_t = 2)]
    seconds: u64,
    /// Run only the loads whose name contains this text.
    #[arg(long)]
    only: Option<String>,
    /// Measure only the keeper, for example with a profiler.
    #[arg(long)]
    keeper_only: bool,
    /// Output format.
    #[arg(long, default_value = "table")]
    output: Output,
    /// Passed by cargo to every benchmark.
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

/// Starts and fills servers; returns the resident memory in megabytes, and the milliseconds from a kill to the first
/// reply.
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

/// Returns when the server replies with the data of `path`.
fn first_answer(server: SocketAddr, path: &str) -> io::Result<()> {
    let by = Instant::now() + RESTART;
    loop {
        match Client::connect(server).and_then(|mut client| client.call(&wire::get_data(path))) {
            Ok(()) => return Ok(()),
            // The server is not up yet: until then connections are refused or closed.
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

//! The command line: arguments in, results on stdout, all other output on stderr, and an exit code.

mod access;
mod access_lists;
mod bench;
mod config;
mod connect;
mod demo;
mod dev;
mod exit;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod gateway;
mod gateway_limits;
mod group;
mod input;
mod install;
mod job;
mod keeper;
mod kind;
mod lane;
mod leader;
mod logging;
mod node;
mod output;
mod pages;
mod placement;
mod process;
mod progress;
mod retention;
mod schedule;
mod top;
mod worker;

use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgAction, Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use bellwether_documents::{ClusterDocument, json_fields};
use exit::Failure;
use logging::LogFormat;
use output::{Format, Output};

/// Shown below every help text.
const EXIT_CODES: &str = "Exit codes:
  0  success
  1  failure: a job is dead, cancelled or in conflict, ZooKeeper refused, or a server failed
  2  usage: bad arguments, names or payload
  3  ZooKeeper is unreachable, or the namespace is absent, foreign or of another layout
  4  not found
  5  timed out";

/// The text of `--version`: the version and the optional features of this build.
fn built() -> String {
    let features = [("otel", cfg!(feature = "otel")), ("zookeeper-tls", cfg!(feature = "zookeeper-tls"))];
    let has: Vec<_> = features.into_iter().filter(|(_, has)| *has).map(|(name, _)| name).collect();
    let told = if has.is_empty() { "none".to_owned() } else { has.join(", ") };
    format!("{}\nfeatures: {told}", env!("CARGO_PKG_VERSION"))
}

/// Time limit for dropping the remains of a node.
const LEFT_OVER: Duration = Duration::from_secs(1);

/// A distributed job scheduler on Apache ZooKeeper that loses nothing it acknowledged.
#[derive(Debug, Parser)]
#[command(name = "bellwether", version, long_version = built(), after_help = EXIT_CODES, propagate_version = true)]
struct Arguments {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// Global options of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
struct Global {
    /// Address and namespace of ZooKeeper: HOST:PORT[,HOST:PORT…][/CHROOT].
    #[arg(long, global = true, value_name = "ADDRESSES")]
    zookeeper: Option<String>,
    #[command(flatten)]
    access: access::AccessOptions,
    /// Time limit of the command: connecting, requests, and waiting for jobs. For example 10s, 500ms, 2m.
    #[arg(long, global = true, default_value = "15s", value_name = "DURATION", value_parser = input::duration)]
    deadline: Duration,
    /// Output format.
    #[arg(long, global = true, value_enum, default_value_t)]
    output: Format,
    /// More log output on stderr; twice for debug output.
    #[arg(short, long, global = true, action = ArgAction::Count, conflicts_with = "quiet")]
    verbose: u8,
    /// Less output on stderr: only errors.
    #[arg(short, long, global = true)]
    quiet: bool,
    /// Format of log lines on stderr.
    #[arg(long, global = true, value_enum, default_value_t)]
    log_format: LogFormat,
    /// Send traces by OTLP over HTTP to the collector at this address, such as http://127.0.0.1:4318 [default:
    /// OpenTelemetry's variables]. Requires a build with the feature otel.
    #[arg(long, global = true, value_name = "URL")]
    otlp_endpoint: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Submit jobs, and show, cancel or retry them.
    #[command(subcommand)]
    Job(job::Job),
    /// Show, pause and resume kinds of jobs.
    #[command(subcommand)]
    Kind(kind::KindCommand),
    /// List, show and abandon groups, or wait for them. The join of a group runs once all of its jobs have ended.
    #[command(subcommand)]
    Group(group::GroupCommand),
    /// Show lanes, whose jobs run one at a time.
    #[command(subcommand)]
    Lane(lane::LaneCommand),
    /// Show, change and drain workers.
    #[command(subcommand)]
    Worker(worker::Worker),
    /// Show the leader.
    #[command(subcommand)]
    Leader(leader::Leader),
    /// Show leader, workers, kinds and rates live, like top(1).
    ///
    /// It reads only from ZooKeeper, with about 20 small requests per refresh, and up to 14 more when many jobs wait or run. JSON: one
    /// object per line and refresh until stdout is closed, with the fields below, trouble (why there is no newer data, or null),
    /// per_second (rates since the last refresh, and ended_by_worker) and sampled_kinds (waiting and running jobs and ended attempts per
    /// second by kind). --sort orders only the page.
    #[command(after_long_help = json_fields::<ClusterDocument>())]
    Top(top::Top),
    /// Show or set how long the records of ended jobs are kept.
    #[command(subcommand)]
    Retention(retention::Retention),
    /// Show or set how the leader chooses a worker for a job.
    #[command(subcommand)]
    Placement(placement::Placement),
    /// Manage schedules, which submit jobs at given times.
    #[command(subcommand)]
    Schedule(schedule::ScheduleCommand),
    /// Check or repair the access lists of the namespace in ZooKeeper.
    #[command(subcommand)]
    Access(access_lists::AccessCommand),
    /// Create tokens for the HTTP gateway.
    #[command(subcommand)]
    Token(gateway::Token),
    /// Run a node in the foreground until SIGTERM or Ctrl-C; a second signal stops it immediately.
    ///
    /// Exit code 1 if it left jobs behind: after a second signal, or if ZooKeeper could not be reached to hand them
    /// back. The leader recovers them after the session timeout.
    Node(node::Node),
    /// Show the effective configuration of a node, or validate a configuration file.
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Print completions for a shell.
    Completions(install::Completions),
    /// Write the files that a package installs with the command: man pages and completions.
    #[command(hide = true)]
    InstallFiles(install::Files),
    /// Run a single-node server that speaks ZooKeeper's protocol, for one machine and without failover.
    Keeper(keeper::Keeper),
    /// Run a keeper and a node with every role in one process, for development.
    Dev(dev::Dev),
    /// Show a cluster that loses its leader and a worker but no job: a keeper, three node processes, real jobs.
    ///
    /// Exit code 0 only if every job succeeded and every attempt is explained.
    Demo(demo::Demo),
    /// Measure throughput and latency of jobs in a namespace.
    Bench(bench::Bench),
}

impl Command {
    /// Changes the process while it has one thread.
    fn before_threads(&self) -> Result<(), Failure> {
        match self {
            Self::Node(node) | Self::Dev(dev::Dev { node, .. }) if node.exec_user.is_some() => {
                process::drop_ambient_capabilities()
            }
            // They start no programs of another user.
            _ => Ok(()),
        }
    }
}

/// The description of the command line.
fn command_line() -> clap::Command {
    config::with_variables(Arguments::command()).mut_subcommands(|command| command.after_help(EXIT_CODES))
}

/// Runs the command that the process arguments name, and returns its exit code.
pub fn main() -> ExitCode {
    let said = match config::understand(command_line(), std::env::args_os().collect::<Vec<_>>()) {
        Ok(said) => said,
        Err(config::Refused::Words(error)) => error.exit(),
        Err(config::Refused::File(failure)) => return exit::code(Err(failure), LogFormat::Text),
    };
    let Arguments { global, command } = match Arguments::from_arg_matches(&said.matches) {
        Ok(arguments) => arguments,
        Err(error) => error.exit(),
    };
    if let Err(failure) = command.before_threads() {
        return exit::code(Err(failure), global.log_format);
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let failure = Failure::failed(format!("cannot start the runtime: {error}"));
            return exit::code(Err(failure), LogFormat::Text);
        }
    };
    let exporter = match logging::start(&global, &command, runtime.handle()) {
        Ok(exporter) => exporter,
        Err(failure) => return exit::code(Err(failure), LogFormat::Text),
    };
    let result = runtime.block_on(run(&global, command, &said));
    if let Some(exporter) = exporter {
        exporter.stop();
    }
    // Jobs that still run lose their process groups and locals here. A blocking handler cannot be ended.
    runtime.shutdown_timeout(LEFT_OVER);
    exit::code(result, global.log_format)
}

async fn run(global: &Global, command: Command, said: &config::Said) -> Result<(), Failure> {
    let output = Output::new(global.output);
    match command {
        Command::Job(command) => job::run(global, output, command).await,
        Command::Kind(command) => kind::run(global, output, command).await,
        Command::Group(command) => group::run(global, output, command).await,
        Command::Lane(command) => lane::run(global, output, command).await,
        Command::Worker(command) => worker::run(global, output, command).await,
        Command::Leader(command) => leader::run(global, output, command).await,
        Command::Top(command) => top::run(global, output, command).await,
        Command::Retention(command) => retention::run(global, output, command).await,
        Command::Placement(command) => placement::run(global, output, command).await,
        Command::Schedule(command) => schedule::run(global, output, command).await,
        Command::Config(command) => config::run(output, &command, said),
        Command::Completions(command) => command.run(output),
        Command::InstallFiles(command) => command.run(),
        Command::Access(command) => access_lists::run(global, output, command).await,
        Command::Token(command) => gateway::run(output, command),
        Command::Node(command) => node::run(global, command).await,
        Command::Keeper(command) => keeper::run(output, command).await,
        Command::Dev(command) => dev::run(global, output, command).await,
        Command::Demo(command) => demo::run(global, output, &command).await,
        Command::Bench(command) => bench::run(global, output, command).await,
    }
}

//! Log lines on stderr, and traces.

mod export;

use std::env;
use std::io::{IsTerminal, stderr};

use clap::ValueEnum;
use tokio::runtime::Handle;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt};

use super::exit::Failure;
use super::{Command, Global};
pub(crate) use export::Exporter;

/// The variable whose filter overrides the options: levels and `TARGET=LEVEL`, separated by commas.
const FILTER: &str = "RUST_LOG";

/// Format of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum LogFormat {
    /// Text for people.
    #[default]
    Text,
    /// One JSON object per line, also for panics and the final error.
    Json,
}

/// Starts logging and tracing. The caller stops the exporter at the end. `RUST_LOG` overrides the options. A node logs
/// its work. A command logs warnings; it logs the events of its session only if asked, because its error also contains
/// them.
pub(crate) fn start(
    global: &Global,
    command: &Command,
    runtime: &Handle,
) -> Result<Option<Exporter>, Failure> {
    if matches!(command, Command::Top(top) if top.draws() && stderr().is_terminal()) {
        // Log lines would overwrite the page, and the page would overwrite them. `top` shows errors on the page.
        return Ok(None);
    }
    let exporter = export::start(global, command, runtime)?;
    let set = env::var(FILTER).ok().filter(|text| !text.trim().is_empty());
    let set = set.map(|text| text.parse::<Targets>());
    let refused = set.as_ref().and_then(|set| set.as_ref().err().map(ToString::to_string));
    let filter = set.and_then(Result::ok).unwrap_or_else(|| filter(global, command));
    let lines = lines(global.log_format).with_filter(filter);
    tracing_subscriber::registry()
        .with(lines)
        .with(exporter.as_ref().map(|exporter| exporter.layer()))
        .init();
    if global.log_format == LogFormat::Json {
        std::panic::set_hook(Box::new(|panic| tracing::error!(%panic, "a thread panicked")));
    }
    if let Some(error) = refused {
        tracing::warn!(
            error,
            "the command ignores RUST_LOG: it must contain LEVEL or TARGET=LEVEL, separated by commas"
        );
    }
    Ok(exporter)
}

/// The filter of the options.
fn filter(global: &Global, command: &Command) -> Targets {
    let filter = match (global.quiet, global.verbose, runs_on(command)) {
        (true, _, true) => "error,zookeeper_client=off",
        (true, _, false) => "off",
        (false, 0, false) => {
            "warn,bellwether_actors::session=off,bellwether::node::exposure=off,zookeeper_client=off"
        }
        // A span of ractor contains only the number of an actor. The target of each line names the actor.
        (false, 0, true) | (false, 1, false) => "info,ractor=warn,zookeeper_client=off",
        (false, 1, true) | (false, 2, false) => "debug",
        (false, 2.., true) | (false, 3.., false) => "trace",
    };
    let filter: Targets = filter.parse().expect("the filters above are valid");
    let private = matches!(command, Command::Dev(dev) if dev.is_private());
    if private { filter.with_target("bellwether::node::exposure", LevelFilter::OFF) } else { filter }
}

/// Whether the command runs until it is stopped.
fn runs_on(command: &Command) -> bool {
    matches!(command, Command::Node(_) | Command::Dev(_) | Command::Keeper(_))
}

fn lines(format: LogFormat) -> Box<dyn Layer<Registry> + Send + Sync> {
    match format {
        LogFormat::Text => fmt::layer().with_writer(stderr).with_ansi(stderr().is_terminal()).boxed(),
        // The fields of an event stay in their own object: a field named `level` would otherwise be there twice.
        LogFormat::Json => fmt::layer().json().with_span_list(false).with_writer(stderr).boxed(),
    }
}

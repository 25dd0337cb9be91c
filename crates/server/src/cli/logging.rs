//! Log lines, on stderr only, and traces.

mod export;

use std::io::{IsTerminal, stderr};

use clap::ValueEnum;
use tokio::runtime::Handle;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt};

use super::exit::Failure;
use super::{Command, Global};
pub(crate) use export::Exporter;

/// How a line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For programs: one JSON object a line, a panic and the last error included.
    Json,
}

/// Starts both; what is given back is to be stopped at the end. `RUST_LOG` wins over the options. A node tells what it
/// does; a command tells its end, and what its session went through only when asked, as its error says that, too.
pub(crate) fn start(
    global: &Global,
    command: &Command,
    runtime: &Handle,
) -> Result<Option<Exporter>, Failure> {
    if matches!(command, Command::Top(top) if top.draws() && stderr().is_terminal()) {
        // It would be drawn over, and draw over. What goes wrong is told on the page.
        return Ok(None);
    }
    let exporter = export::start(global, command, runtime)?;
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| {
        EnvFilter::new(match (global.quiet, global.verbose, runs_on(command)) {
            (true, _, true) => "error,zookeeper_client=off",
            (true, _, false) => "off",
            (false, 0, false) => "warn,bellwether_actors::session=off,zookeeper_client=off",
            (false, 0, true) | (false, 1, false) => "info,zookeeper_client=off",
            (false, 1, true) | (false, 2, false) => "debug",
            (false, 2.., true) | (false, 3.., false) => "trace",
        })
    });
    let lines = lines(global.log_format).with_filter(filter);
    tracing_subscriber::registry()
        .with(lines)
        .with(exporter.as_ref().map(|exporter| exporter.layer()))
        .init();
    if global.log_format == LogFormat::Json {
        std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}")));
    }
    Ok(exporter)
}

/// Whether it is there to go on.
fn runs_on(command: &Command) -> bool {
    matches!(command, Command::Node(_) | Command::Dev(_) | Command::Keeper(_))
}

fn lines(format: LogFormat) -> Box<dyn Layer<Registry> + Send + Sync> {
    match format {
        LogFormat::Text => fmt::layer().with_writer(stderr).with_ansi(stderr().is_terminal()).boxed(),
        // An event's fields stay apart from the line's own: one that is called `level` would be there twice.
        LogFormat::Json => fmt::layer().json().with_span_list(false).with_writer(stderr).boxed(),
    }
}

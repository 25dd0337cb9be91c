//! Log lines, on stderr only.

use std::io::{IsTerminal, stderr};

use tracing_subscriber::EnvFilter;

use super::{Command, Global};

/// `RUST_LOG` wins over the options. A node tells what it does; a command tells its end, and what its session went
/// through only when asked, as its error says that, too.
pub(crate) fn start(global: &Global, command: &Command) {
    if matches!(command, Command::Top(top) if top.draws() && stderr().is_terminal()) {
        // It would be drawn over, and draw over. What goes wrong is told on the page.
        return;
    }
    let node = matches!(command, Command::Node(_) | Command::Dev(_) | Command::Keeper(_));
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| {
        EnvFilter::new(match (global.quiet, global.verbose, node) {
            (true, _, true) => "error,zookeeper_client=off",
            (true, _, false) => "off",
            (false, 0, false) => "warn,bellwether_actors::session=off,zookeeper_client=off",
            (false, 0, true) | (false, 1, false) => "info,zookeeper_client=off",
            (false, 1, true) | (false, 2, false) => "debug",
            (false, 2.., true) | (false, 3.., false) => "trace",
        })
    });
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(stderr)
        .with_ansi(stderr().is_terminal())
        .init();
}

//! `bellwether bench`.

use clap::Args;

use super::Global;
use super::exit::Failure;
use super::output::Output;

#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// How many jobs to submit and wait for.
    #[arg(long, default_value_t = 10_000)]
    pub(crate) jobs: usize,
    /// The kind to submit; some live worker must handle it.
    #[arg(long, default_value = "noop")]
    pub(crate) kind: String,
    /// Bytes of each payload.
    #[arg(long, default_value_t = 16)]
    pub(crate) payload_bytes: usize,
}

pub(crate) async fn run(global: &Global, output: Output, bench: Bench) -> Result<(), Failure> {
    let zookeeper = global.zookeeper()?;
    tracing::debug!(?bench, ?output, zookeeper, "asked for a benchmark");
    Err(Failure::failed("bench: not wired yet"))
}

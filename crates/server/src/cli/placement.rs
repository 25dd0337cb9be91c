//! `bellwether placement`.

use bellwether::placement::StrategyName;
use clap::Subcommand;

use super::Global;
use super::exit::Failure;
use super::output::{Format, Output};
use bellwether_documents::{PlacementChange, PlacementDocument, sentence};

#[derive(Debug, Subcommand)]
pub(crate) enum Placement {
    /// Show the placement strategy.
    ///
    /// JSON: an object with strategy, built_in (whether every node has this strategy), set (false if it is the default
    /// because none was set), choices (the built-in strategies) and changed (who set it last).
    Show,
    /// Set the placement strategy: least-loaded, round-robin, random, rendezvous, or the name of a custom strategy.
    ///
    /// Applies to the whole namespace; the leader follows immediately. A leader that has no strategy of this name uses
    /// least-loaded and logs a warning. JSON as for `placement show`.
    Set(PlacementChange),
}

pub(crate) async fn run(global: &Global, output: Output, command: Placement) -> Result<(), Failure> {
    let set = match command {
        Placement::Show => None,
        Placement::Set(PlacementChange { strategy }) => Some(StrategyName::new(strategy)),
    };
    let set = set.transpose().map_err(|error| Failure::usage(error.to_string()))?;
    let client = global.reader().await?;
    let strategy = match set {
        None => client.placement_strategy().await?,
        Some(strategy) => Some(client.set_placement_strategy(strategy).await?),
    };
    client.close().await;
    let document = PlacementDocument::new(strategy.as_ref());
    if !document.built_in {
        tracing::warn!(
            strategy = document.strategy,
            "the strategy is not built in: a leader without a custom strategy of this name uses least-loaded"
        );
    }
    match output.format {
        Format::Json => output.json(&document),
        Format::Table => {
            let origin = match (document.set, document.built_in) {
                (false, _) => "default",
                (true, true) => "built-in",
                (true, false) => "custom",
            };
            let changed = strategy.and_then(|set| set.changed).as_ref().map_or_else(String::new, sentence);
            output.rows(
                ["STRATEGY", "ORIGIN", "LAST CHANGE"],
                vec![[document.strategy, origin.to_owned(), changed]],
            )
        }
    }
}

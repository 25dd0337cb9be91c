//! The placement strategy.

use bellwether::client::Setting;
use bellwether::placement::{BuiltInStrategy, StrategyName};
use clap::Args;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ChangedDocument;

/// How the leader chooses one of the workers that can take a job.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Placement)]
pub struct PlacementDocument {
    /// Name of the strategy that is set, or of the default if none is set.
    #[schema(example = "least-loaded")]
    pub strategy: String,
    /// Whether the strategy is built in, so that every leader has it.
    pub built_in: bool,
    /// Whether the strategy was set.
    pub set: bool,
    /// Names of the built-in strategies, the default first.
    choices: Vec<&'static str>,
    /// The last change of the strategy; null if there was none, or if its client named no author.
    #[schema(required)]
    changed: Option<ChangedDocument>,
}

impl PlacementDocument {
    /// Describes the strategy that is set, if any.
    pub fn new(set: Option<&Setting<StrategyName>>) -> Self {
        let choices = BuiltInStrategy::ALL.map(BuiltInStrategy::as_str).to_vec();
        let strategy = set.map_or(BuiltInStrategy::default().as_str(), |set| set.value.as_str());
        Self {
            strategy: strategy.to_owned(),
            built_in: choices.contains(&strategy),
            set: set.is_some(),
            choices,
            changed: set.and_then(|set| set.changed.as_ref()).map(Into::into),
        }
    }
}

/// A change of the placement.
#[derive(Debug, Clone, Args, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PlacementChange {
    /// Name of a built-in strategy, or of a custom strategy of the candidates.
    #[schema(value_type = StrategyName)]
    pub strategy: String,
}

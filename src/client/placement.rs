//! The placement strategy: one setting of the namespace, which a running leader follows.

use bellwether_core::name::StrategyName;
use bellwether_core::path;
use bellwether_core::placement::PlacementSetting;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::Client;
use super::error::{Error, Subject};
use super::setting::Setting;

impl Client {
    /// Returns the placement strategy that is set; `None` if none is set. Then leaders use the default,
    /// [`BuiltInStrategy::LeastLoaded`](crate::placement::BuiltInStrategy::LeastLoaded).
    ///
    /// # Errors
    /// [`Error::Settings`] if the setting cannot be read (then leaders use the default, too), or no answer within the
    /// client's deadline.
    pub fn placement_strategy(&self) -> BoxFuture<'_, Result<Option<Setting<StrategyName>>, Error>> {
        async move { Ok(self.setting(path::PLACEMENT).await?.map(named)) }.boxed()
    }

    /// Sets the placement strategy of the namespace, and returns the setting. The leader follows immediately, without a restart;
    /// assignments that it has made stand. Repeating the call is safe.
    ///
    /// No node checks the name now: a leader that has no strategy of this name uses the default and logs a warning.
    ///
    /// # Errors
    /// The setting could not be written, or the outcome is unknown. A setting that a newer build wrote is not overwritten.
    pub fn set_placement_strategy(
        &self,
        strategy: StrategyName,
    ) -> BoxFuture<'_, Result<Setting<StrategyName>, Error>> {
        async move {
            let change = |_| Ok::<_, Error>(PlacementSetting { strategy: strategy.clone() });
            Ok(named(self.update_setting((path::PLACEMENT, Subject::Placement), change).await?))
        }
        .boxed()
    }
}

fn named(setting: Setting<PlacementSetting>) -> Setting<StrategyName> {
    Setting { value: setting.value.strategy, changed: setting.changed }
}

//! The placement setting.

use serde::{Deserialize, Serialize};

use crate::name::StrategyName;
use crate::placement::PlacementSetting;
use crate::wire::WireError;

#[derive(Serialize, Deserialize)]
pub struct PlacementSettingV1 {
    strategy: String,
}

impl From<&PlacementSetting> for PlacementSettingV1 {
    fn from(setting: &PlacementSetting) -> Self {
        Self { strategy: setting.strategy.to_string() }
    }
}

impl TryFrom<PlacementSettingV1> for PlacementSetting {
    type Error = WireError;
    fn try_from(stored: PlacementSettingV1) -> Result<Self, WireError> {
        Ok(Self { strategy: StrategyName::new(stored.strategy)? })
    }
}

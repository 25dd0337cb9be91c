//! Wrong wall clocks.

use bellwether::client::WrongClock;
use serde::Serialize;
use utoipa::ToSchema;

use super::name;

/// A process whose wall clock differs from ZooKeeper's by more than 5 s.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = WrongClock)]
pub struct WrongClockDocument {
    /// Its host.
    host: String,
    /// Its node; null for a client, for example a gateway.
    #[schema(required)]
    node: Option<String>,
    /// By how many seconds its clock is ahead of ZooKeeper's; negative if it is behind.
    #[schema(example = -12)]
    ahead_seconds: i64,
}

impl From<&WrongClock> for WrongClockDocument {
    fn from(clock: &WrongClock) -> Self {
        Self { host: clock.host.clone(), node: name(clock.node.as_ref()), ahead_seconds: clock.ahead }
    }
}

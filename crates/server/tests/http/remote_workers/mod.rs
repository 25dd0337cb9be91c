//! Remote workers, as their processes see the gateway.

mod bounds;
mod ends;
mod stops;
mod takeover;
mod worker;

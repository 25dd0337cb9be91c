//! Payload codecs, with the cipher of the example `encryption`, on real servers.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

#[path = "../../examples/encryption/cipher.rs"]
mod cipher;
mod failures;
mod groups;
mod identity;
mod keys;
mod order;
mod round_trip;
mod schedules;
mod stage;

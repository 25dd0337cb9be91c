//! Errors of the client.
//!
//! Each error has a [`class`](Error::class), the type of the failure, and a [`remedy`](Error::remedy), the reaction
//! that is left to the caller.

mod call;
mod result;
mod submit;
mod unavailable;
mod wait;

pub use call::{Error, Subject};
pub use result::ResultError;
pub use submit::SubmitError;
pub use unavailable::{ConnectError, Unavailable};
pub use wait::WaitError;

#[cfg(test)]
mod tests;

//! The machines of the status reporter: [`beats`] renew leases and write progress, and the [`reporter`] closes attempts.

pub mod beats;
pub mod reporter;

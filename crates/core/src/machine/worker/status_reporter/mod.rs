//! State machines of the status reporter: [`beats`] renews leases and writes progress, [`reporter`] closes attempts.

pub mod beats;
pub mod reporter;

//! State machines of the status reporter: [`beats`] renews leases and writes progress, [`reporter`] closes attempts, and
//! [`segments`] closes those of members of segments, or makes them jobs of their own.

pub mod beats;
pub mod reporter;
pub mod segments;

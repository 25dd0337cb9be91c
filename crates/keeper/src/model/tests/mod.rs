//! The model as a client meets it, request by request.

mod acl;
mod invariants;
mod multi;
mod property;
mod sessions;
mod stage;
mod watches;
mod writes;

//! Tests of the model, request by request.

mod acl;
mod bounds;
mod invariants;
mod multi;
mod property;
mod sessions;
mod stage;
mod watches;
mod writes;

//! Tests of the janitor against a harness that answers its requests, one module per kind of removal.

mod corners;
mod groups;
mod records;
mod stage;
mod terms;

//! Tests of the janitor against a harness that answers its requests, one module per kind of removal.

mod groups;
mod leftovers;
mod records;
mod segments;
mod stage;
mod terms;

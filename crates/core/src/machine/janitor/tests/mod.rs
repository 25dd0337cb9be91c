//! The janitor on a stage that answers it, each kind of thing that it removes for itself.

mod corners;
mod groups;
mod records;
mod stage;
mod terms;

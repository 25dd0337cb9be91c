//! The machines of the worker registry: [`membership`] knows the workers that live, and [`recovery`] takes back the jobs of
//! those that died.

pub mod membership;
pub mod recovery;

//! The machines of the election: a [`campaign`] for being the first candidate, and the [`leadership`] that claims an epoch
//! once the campaign is won.

pub mod campaign;
pub mod leadership;

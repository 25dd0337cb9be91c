//! State machines of the election: a [`campaign`] to become the first candidate, and the [`leadership`] that claims an
//! epoch once the campaign is won.

pub mod campaign;
pub mod leadership;

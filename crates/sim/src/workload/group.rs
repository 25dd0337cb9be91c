//! Making, filling and sealing groups.

use std::time::Duration;

use bellwether::Group;
use futures::future::join_all;

use super::{Env, Wish};
use crate::plan::Seal;

/// How often a generation that did not come to its end is done again, and how long after.
const AGAIN: u32 = 3;
const AGAIN_AFTER: Duration = Duration::from_secs(4);

/// Members that are submitted in one round.
const TOGETHER: usize = 3;

/// What a client submits as a group.
pub(crate) struct Generation {
    pub(crate) group: Group,
    pub(crate) members: Vec<Wish>,
    pub(crate) seal: Seal,
    /// Between rounds.
    pub(crate) pace: Duration,
}

impl Env {
    /// Generates a group's members, again if something of it was not accepted: which changes nothing for those that
    /// were.
    pub(crate) async fn generate(self, generation: Generation) {
        for _ in 0..AGAIN {
            if self.generate_once(&generation).await {
                return;
            }
            self.sleep(AGAIN_AFTER).await;
        }
    }

    async fn generate_once(&self, generation: &Generation) -> bool {
        let Generation { group, members, seal, pace } = generation;
        let Ok(group) = self.client.group(group.clone()).await else { return false };
        let total = u32::try_from(members.len()).expect("few members");
        let numbered = (0..total).zip(members).collect::<Vec<_>>();
        for round in numbered.chunks(TOGETHER) {
            let submitted = round.iter().map(|(number, wish)| {
                let last = *seal == Seal::Last && number + 1 == total;
                self.submit_member(&group, *number, (*wish).clone(), last)
            });
            if !join_all(submitted).await.into_iter().all(|accepted| accepted) {
                return false;
            }
            self.sleep(*pace).await;
        }
        match seal {
            Seal::After => group.seal(total).await.is_ok(),
            Seal::First | Seal::Last | Seal::Never => true,
        }
    }
}

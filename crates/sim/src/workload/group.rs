//! Creating, filling and sealing groups.

use std::time::Duration;

use bellwether::Group;
use futures::future::join_all;

use super::{Env, Wish};
use crate::plan::Seal;

/// How often an incomplete submission of a group is repeated, and after which pause.
const AGAIN: u32 = 3;
const AGAIN_AFTER: Duration = Duration::from_secs(4);

/// Members submitted in one round.
const TOGETHER: usize = 3;

/// One submission of a group by a client.
pub(crate) struct Generation {
    pub(crate) group: Group,
    pub(crate) members: Vec<Wish>,
    pub(crate) seal: Seal,
    /// Pause between rounds.
    pub(crate) pace: Duration,
}

impl Env {
    /// Submits a group's members, and again if a part was not accepted. Repeating changes nothing for accepted members.
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
        let total = u32::try_from(members.len()).expect("a group has few members");
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

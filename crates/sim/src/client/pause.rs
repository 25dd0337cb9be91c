//! Pausing a kind for a while: as `src/client/kinds.rs`.

use bellwether_core::name::Kind;
use bellwether_core::path;
use bellwether_core::txn::{self, Op};
use bellwether_core::worker::PauseRecord;

use super::{Deadline, Shell, TooLate, Written};

/// How long each try may take.
const TRY_US: u64 = 15_000_000;

impl Shell {
    /// Pauses a kind, and resumes it after a while, however often that has to be tried: a kind that stays paused runs
    /// nothing, which is nobody's fault.
    pub(crate) async fn pause(self, kind: Kind, ms: u64) {
        let pause = PauseRecord { by: "the plan".to_owned(), since: self.wall() };
        self.change(&kind, txn::pause(&kind, &pause), true).await;
        self.sleep(ms * 1_000).await;
        self.change(&kind, txn::unpause(&kind), false).await;
    }

    async fn change(&self, kind: &Kind, op: Op, there: bool) {
        while !self.try_change(kind, &op, there).await.is_ok_and(|done| done) {}
    }

    async fn try_change(&self, kind: &Kind, op: &Op, there: bool) -> Result<bool, TooLate> {
        let by = Deadline(self.now_us() + TRY_US);
        match self.commit(by, std::slice::from_ref(op)).await? {
            Written::Applied => Ok(true),
            Written::Lost | Written::Unknown => {
                Ok(self.znode(by, path::pause(kind)).await?.is_some() == there)
            }
        }
    }
}

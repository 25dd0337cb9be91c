//! Having a worker drain: as `src/client/cluster.rs`.

use bellwether_core::name::WorkerId;
use bellwether_core::worker::WorkerInfo;
use bellwether_core::{path, txn, wire};

use super::{Deadline, Shell, TooLate, Written};
use crate::history::{Answer, Call};
use crate::zk::ask;

/// As the façade's.
const TRIES: u32 = 20;

impl Shell {
    /// Lists the workers, and has one of them drain.
    pub(crate) async fn drain_one(self, which: usize) {
        let listed = self.read(self.by(), || ask::children(path::WORKERS.to_owned()), ask::listed).await;
        let Ok(names) = listed else { return };
        let mut workers: Vec<_> = names.iter().flatten().filter_map(|name| WorkerId::parse(name)).collect();
        workers.sort_unstable();
        let Some(worker) = workers.get(which % workers.len().max(1)).copied() else { return };
        let (by, call) = self.invoke(Call::Drain { worker });
        let answer = self.try_drain(by, worker).await;
        self.answer(call, answer.unwrap_or_else(|_| Answer::Unknown { why: "no answer in time".to_owned() }));
    }

    async fn try_drain(&self, by: Deadline, worker: WorkerId) -> Result<Answer, TooLate> {
        let mut unknown = false;
        for _ in 0..TRIES {
            let Some(node) = self.znode(by, path::worker(worker)).await? else {
                return Ok(if unknown { Answer::Drains } else { Answer::WorkerGone });
            };
            let info = wire::decode::<WorkerInfo>(&node.data).expect("nobody overwrites it here");
            if info.draining {
                return Ok(Answer::Drains);
            }
            match self.commit(by, &txn::mark_draining(worker, &info, node.version)).await? {
                Written::Applied => return Ok(Answer::Drains),
                Written::Lost => {}
                Written::Unknown => unknown = true,
            }
        }
        Ok(Answer::Unknown { why: "contended".to_owned() })
    }
}

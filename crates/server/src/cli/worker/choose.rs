//! The workers that a command names.

use bellwether::client::WorkerView;

use crate::cli::exit::{Failure, Kind};

/// Returns the named workers, each once. A node has at most one worker.
pub(super) fn choose(live: &[WorkerView], named: &[String]) -> Result<Vec<WorkerView>, Failure> {
    let mut chosen = Vec::<WorkerView>::new();
    for name in named {
        let is = |worker: &&WorkerView| worker.id.to_string() == *name || node(worker).as_ref() == Some(name);
        let mut found = live.iter().filter(is).peekable();
        if found.peek().is_none() {
            let said = format!("there is no worker {name}: `bellwether worker list` shows ids and nodes");
            return Err(Failure::new(Kind::NotFound, said));
        }
        chosen.extend(found.cloned());
    }
    chosen.sort_by_key(|worker| worker.id);
    chosen.dedup_by_key(|worker| worker.id);
    Ok(chosen)
}

/// Returns the name of a worker's node; `None` if its registration cannot be read.
pub(super) fn node(worker: &WorkerView) -> Option<String> {
    worker.info.as_ref().ok().map(|info| info.node.to_string())
}

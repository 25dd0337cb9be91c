//! A node process: a node as users embed it, which records its runs and its leadership states.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use bellwether::Node;
use bellwether::node::RunError;
use bellwether_core::machine::election::leadership::LeadershipState;
use bellwether_core::name::NodeId;
use bellwether_host::election::ActiveTerm;
use bellwether_host::node::Parts;
use bellwether_sim::history::{EventKind, Leading};
use bellwether_zk::Zk;
use clap::Args;
use tokio::sync::watch;

use crate::failure::Failure;
use crate::record::Recorder;
use crate::work;

/// Interval of reading a leader's trust: a small part of a session timeout.
const TRUST_EVERY: Duration = Duration::from_millis(100);

/// A node process of a chaos run.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Name of the node.
    #[arg(long)]
    pub(crate) name: NodeId,
    /// ZooKeeper connect string.
    #[arg(long)]
    pub(crate) zookeeper: String,
    /// File for the records.
    #[arg(long)]
    pub(crate) records: PathBuf,
    /// Session timeout, in milliseconds.
    #[arg(long)]
    pub(crate) session_ms: u64,
    /// Number of jobs that it runs at a time.
    #[arg(long)]
    pub(crate) slots: u32,
    /// Do not run a worker.
    #[arg(long)]
    pub(crate) candidate_only: bool,
    /// Do not run a candidate.
    #[arg(long)]
    pub(crate) worker_only: bool,
}

/// Exit code after a drain that was given up, which is allowed while ZooKeeper is unreachable.
pub(crate) const ABANDONED: u8 = 3;

/// Runs until it receives a signal.
pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let recorder = Arc::new(Recorder::open(&arguments.records)?);
    let mut builder = Node::builder(&arguments.zookeeper)
        .node_id(arguments.name.as_str())
        .session_timeout(Duration::from_millis(arguments.session_ms))
        .candidate(!arguments.worker_only)
        .slots(arguments.slots)
        .drain_grace(Duration::from_secs(2));
    if !arguments.candidate_only {
        builder = builder.handlers(work::handlers(&recorder));
    }
    let node = builder.start().await?;
    let follow = follow(arguments.name, node.actors().parts(), Arc::clone(&recorder));
    tokio::select! {
        ended = node.run() => match ended {
            Err(RunError::Abandoned) => return Ok(ExitCode::from(ABANDONED)),
            ended => ended?,
        },
        () = follow => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// Records each change of the node's leadership state, across restarts of its election.
async fn follow(node: NodeId, mut parts: watch::Receiver<Parts>, recorder: Arc<Recorder>) {
    let mut lead = Stand { node, recorder, zk: None, last: None };
    loop {
        let election = parts.borrow_and_update().election.clone();
        if let Some(election) = election {
            let mut leadership = election.leadership();
            loop {
                let state = leadership.borrow_and_update().clone();
                lead.tell(&state);
                // An extension of the trust is not announced, so it is read periodically.
                if let Ok(Err(_)) = tokio::time::timeout(TRUST_EVERY, leadership.changed()).await {
                    break;
                }
            }
        }
        // The actor has ended and has withdrawn its permission, so its last state no longer holds.
        lead.record(0, 0, Leading::Inactive, None);
        if parts.changed().await.is_err() {
            return std::future::pending().await;
        }
    }
}

struct Stand {
    node: NodeId,
    recorder: Arc<Recorder>,
    zk: Option<Zk>,
    last: Option<(i32, Leading, Option<u64>)>,
}

impl Stand {
    fn tell(&mut self, state: &LeadershipState<ActiveTerm>) {
        match state {
            LeadershipState::Active(ActiveTerm { zk, term }) => {
                self.zk = Some(zk.clone());
                // After this time the node does not act, whatever state it last reported, because it compares a clock.
                let until = Some(zk.trusted_until().0);
                self.record(term.session(), term.epoch(), Leading::Active, until);
            }
            LeadershipState::Paused { term, .. } => {
                let until = self.zk.as_ref().map(|zk| zk.trusted_until().0);
                self.record(term.session(), term.epoch(), Leading::Paused, until);
            }
            LeadershipState::Inactive(_) => {
                // The session ends with its last handle.
                self.zk = None;
                self.record(0, 0, Leading::Inactive, None);
            }
        }
    }

    fn record(&mut self, session: i64, epoch: i32, state: Leading, until: Option<u64>) {
        // Two readings of the same time may differ by a millisecond.
        let moved = |before: Option<u64>| {
            before.is_none() || until.zip(before).is_some_and(|(now, before)| now > before + 20)
        };
        let told = self.last.is_some_and(|(was, stood, before)| {
            // The trust may be extended during a pause, too, by a reply from a server that is reachable again.
            (was, stood) == (epoch, state) && (state == Leading::Inactive || !moved(before))
        });
        if !told {
            self.last = Some((epoch, state, until));
            let node = self.node.clone();
            self.recorder.record(EventKind::Leadership { node, session, epoch, state, until });
        }
    }
}

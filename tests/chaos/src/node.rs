//! A node process: a node as users embed it, which records its runs and how it stands in the election.

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
use crate::record::{Recorder, at};
use crate::work;

/// How often a leader's trust is looked at: a small part of a session timeout.
const TRUST_EVERY: Duration = Duration::from_millis(100);

/// A node of a chaos run.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Its name.
    #[arg(long)]
    pub(crate) name: NodeId,
    /// Where ZooKeeper is.
    #[arg(long)]
    pub(crate) zookeeper: String,
    /// Where to record.
    #[arg(long)]
    pub(crate) records: PathBuf,
    /// Its session timeout, in milliseconds.
    #[arg(long)]
    pub(crate) session_ms: u64,
    /// How many jobs it runs at a time.
    #[arg(long)]
    pub(crate) slots: u32,
    /// Not a worker.
    #[arg(long)]
    pub(crate) candidate_only: bool,
    /// Not a candidate.
    #[arg(long)]
    pub(crate) worker_only: bool,
}

/// How a process ends whose drain was given up: as it should, when ZooKeeper is away.
pub(crate) const ABANDONED: u8 = 3;

/// Runs until a signal ends it.
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

/// Records how the node stands, at each change, whichever of its elections it is.
async fn follow(node: NodeId, mut parts: watch::Receiver<Parts>, recorder: Arc<Recorder>) {
    let mut lead = Stand { node, recorder, zk: None, last: None };
    loop {
        let election = parts.borrow_and_update().election.clone();
        if let Some(election) = election {
            let mut leadership = election.leadership();
            loop {
                let state = leadership.borrow_and_update().clone();
                lead.tell(&state);
                // Nobody tells when trust moves on: it is looked at.
                if let Ok(Err(_)) = tokio::time::timeout(TRUST_EVERY, leadership.changed()).await {
                    break;
                }
            }
        }
        // The actor is gone and has withdrawn its permission: what it said last holds no more.
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
                // Beyond it the node does not act, whatever it said last: it compares a clock.
                let until = Some(at(zk.trusted_until()));
                self.record(term.session(), term.epoch(), Leading::Active, until);
            }
            LeadershipState::Paused { term, .. } => {
                let until = self.zk.as_ref().map(|zk| at(zk.trusted_until()));
                self.record(term.session(), term.epoch(), Leading::Paused, until);
            }
            LeadershipState::Inactive(_) => {
                // A session ends with its last handle.
                self.zk = None;
                self.record(0, 0, Leading::Inactive, None);
            }
        }
    }

    fn record(&mut self, session: i64, epoch: i32, state: Leading, until: Option<u64>) {
        // Two looks at one instant differ by a millisecond.
        let moved = |before: Option<u64>| {
            before.is_none() || until.zip(before).is_some_and(|(now, before)| now > before + 20)
        };
        let told = self.last.is_some_and(|(was, stood, before)| {
            // Trust moves on in a pause, too: a server that was found again has answered.
            (was, stood) == (epoch, state) && (state == Leading::Inactive || !moved(before))
        });
        if !told {
            self.last = Some((epoch, state, until));
            let node = self.node.clone();
            self.recorder.record(EventKind::Leadership { node, session, epoch, state, until });
        }
    }
}

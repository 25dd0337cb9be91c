//! The expirer: ends jobs whose time to start has passed, as [`bellwether_core::machine::expirer`] decides.

use bellwether_core::job::JobRecord;
use bellwether_core::machine::expirer::{self, Effect, Event, Item};
use bellwether_core::metric;
use bellwether_core::name::JobId;
use bellwether_core::outcome::Outcome;
use bellwether_core::path;
use bellwether_core::time::WallMillis;
use bellwether_core::txn::Batch;
use bellwether_core::wire;
use bellwether_zk::{Node, ReadError};
use metrics::counter;
use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::{Fenced, SWEEP, Term};
use crate::clock;
use crate::spawn::actor;
use crate::task::{Owned, report, sweep};
use crate::unreadable::Unreadable;

pub(super) struct Expirer;

pub(super) enum ExpirerMsg {
    /// From the assigner, which knows them no more.
    Overdue(Vec<(JobId, WallMillis)>),
    Read(Vec<JobId>, Result<Vec<Option<Node>>, ReadError>),
    Committed(Batch<Item>, Outcome<()>),
    Resume,
    Sweep,
}

actor!(Expirer, "expirer", ExpirerMsg { Overdue, Read, Committed, Resume, Sweep });

pub(super) struct State {
    term: Term,
    fenced: Fenced,
    machine: expirer::Expirer,
    unreadable: Unreadable,
    _sweep: Owned,
}

impl Actor for Expirer {
    type Msg = ExpirerMsg;
    type State = State;
    type Arguments = (Term, Fenced);

    async fn pre_start(
        &self,
        myself: ActorRef<ExpirerMsg>,
        (term, fenced): Self::Arguments,
    ) -> Result<State, ActorProcessingErr> {
        let machine = expirer::Expirer::new(term.epoch);
        let _sweep = sweep(&myself, SWEEP, || ExpirerMsg::Sweep);
        Ok(State { term, fenced, machine, unreadable: Unreadable::default(), _sweep })
    }

    async fn handle(
        &self,
        myself: ActorRef<ExpirerMsg>,
        message: ExpirerMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let event = match message {
            ExpirerMsg::Overdue(jobs) => Event::Overdue(jobs),
            ExpirerMsg::Read(jobs, Ok(nodes)) => {
                let records = jobs.into_iter().zip(nodes).map(|(job, node)| {
                    let record = node.and_then(|node| decode(&job, &node, &mut state.unreadable));
                    (job, record)
                });
                Event::Read(records.collect())
            }
            ExpirerMsg::Read(jobs, Err(_)) => Event::ReadFailed(jobs),
            ExpirerMsg::Committed(batch, outcome) => Event::Committed(batch, outcome),
            ExpirerMsg::Resume => Event::Resync,
            ExpirerMsg::Sweep => {
                state._sweep = sweep(&myself, SWEEP, || ExpirerMsg::Sweep);
                Event::Resync
            }
        };
        state.feed(&myself, event);
        Ok(())
    }
}

impl State {
    fn feed(&mut self, myself: &ActorRef<ExpirerMsg>, event: Event) {
        let mut effects = Vec::new();
        self.machine.handle(clock::wall(), event, &mut effects);
        let zk = &self.term.zk;
        for effect in effects {
            match effect {
                Effect::Read(jobs) => {
                    let nodes = zk.get_many(jobs.iter().map(path::record).collect());
                    report(myself, nodes, move |nodes| ExpirerMsg::Read(jobs, nodes));
                }
                Effect::Commit(batch) => {
                    let committed = zk.commit_batch(batch);
                    report(myself, committed, |(batch, outcome)| ExpirerMsg::Committed(batch, outcome));
                }
                Effect::Ended(Item { job, kind }) => {
                    tracing::info!(%job, %kind, "not started before it expired: dead");
                    counter!(metric::JOBS_DEAD, "kind" => kind.to_string()).increment(1);
                }
                Effect::FencedOut => self.fenced.tell(),
            }
        }
    }
}

/// One that cannot be read is never started either; whoever looks at it sees why.
fn decode(job: &JobId, node: &Node, unreadable: &mut Unreadable) -> Option<(JobRecord, i32)> {
    wire::decode(&node.data)
        .inspect_err(|error| unreadable.tell(path::record(job), node.version, error))
        .ok()
        .map(|record| (record, node.version))
}

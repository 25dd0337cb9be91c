//! The expirer: ends jobs that expired before they started, as [`bellwether_core::machine::expirer`] decides.

use bellwether_core::job::JobRecord;
use bellwether_core::machine::expirer::{self, Effect, Event, Item};
use bellwether_core::machine::worker::Lookup;
use bellwether_core::metric;
use bellwether_core::name::JobId;
use bellwether_core::outcome::Outcome;
use bellwether_core::path;
use bellwether_core::port::Node;
use bellwether_core::time::WallMillis;
use bellwether_core::txn::Batch;
use metrics::counter;

use super::{FencedOut, SWEEP};
use crate::kind_label;
use crate::unreadable::Unreadable;
use crate::{Concern, Context};

/// The timer of the expirer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// The periodic retry.
    Sweep,
}

/// Ends expired jobs, in one term.
pub struct Expirer {
    machine: expirer::Expirer,
    unreadable: Unreadable,
}

/// Messages to the expirer.
pub enum ExpirerMsg {
    /// From the assigner, which no longer tracks these jobs.
    Overdue(Vec<(JobId, WallMillis)>),
    /// The records that were read, or the jobs whose read was not answered.
    Read(Result<Vec<(JobId, Lookup<JobRecord>)>, Vec<JobId>>),
    /// The outcome of a transaction that ends jobs.
    Committed(Batch<Item>, Outcome<()>),
    /// The term is active again.
    Resume,
    /// The periodic retry is due.
    Sweep,
}

kinds!(ExpirerMsg { Overdue, Read, Committed, Resume, Sweep });

impl Concern for Expirer {
    const NAME: &'static str = "expirer";
    type Msg = ExpirerMsg;
    /// The epoch of the term.
    type Args = i32;
    type Key = Key;
    type Tell = FencedOut;

    fn start(cx: &mut Context<'_, Self>, epoch: i32) -> Self {
        cx.sweep(Key::Sweep, SWEEP, ExpirerMsg::Sweep);
        Self { machine: expirer::Expirer::new(epoch), unreadable: Unreadable::default() }
    }

    fn handle(&mut self, cx: &mut Context<'_, Self>, msg: ExpirerMsg) {
        let event = match msg {
            ExpirerMsg::Overdue(jobs) => Event::Overdue(jobs),
            ExpirerMsg::Read(Ok(looks)) => {
                Event::Read(looks.into_iter().map(|(job, look)| self.record(job, look)).collect())
            }
            ExpirerMsg::Read(Err(jobs)) => Event::ReadFailed(jobs),
            ExpirerMsg::Committed(batch, outcome) => Event::Committed(batch, outcome),
            ExpirerMsg::Resume => Event::Resync,
            ExpirerMsg::Sweep => {
                cx.sweep(Key::Sweep, SWEEP, ExpirerMsg::Sweep);
                Event::Resync
            }
        };
        self.feed(cx, event);
    }
}

impl Expirer {
    /// Returns the record of a job. A job with an unreadable record is not ended here, and no worker starts it.
    fn record(&mut self, job: JobId, look: Lookup<JobRecord>) -> (JobId, Option<(JobRecord, i32)>) {
        let record = match look {
            Lookup::Found(record, version) => Some((record, version)),
            Lookup::Absent => None,
            Lookup::Unreadable { why, version, .. } => {
                self.unreadable.tell(path::record(&job), version, why);
                None
            }
        };
        (job, record)
    }

    fn feed(&mut self, cx: &mut Context<'_, Self>, event: Event) {
        let mut effects = Vec::new();
        self.machine.handle(cx.wall, event, &mut effects);
        for effect in effects {
            match effect {
                Effect::Read(jobs) => {
                    cx.get_many(jobs.iter().map(path::record).collect(), move |nodes| {
                        ExpirerMsg::Read(match nodes {
                            Ok(nodes) => Ok(jobs.into_iter().zip(nodes.iter().map(Node::look)).collect()),
                            Err(_) => Err(jobs),
                        })
                    });
                }
                Effect::Commit(batch) => cx.commit_batch(batch, ExpirerMsg::Committed),
                Effect::Ended(Item { job, kind }) => {
                    tracing::info!(%job, %kind, "the job is dead: it expired before it started");
                    counter!(metric::JOBS_DEAD, "kind" => kind_label::of(&kind)).increment(1);
                }
                Effect::FencedOut => cx.tell(FencedOut),
            }
        }
    }
}

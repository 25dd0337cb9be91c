//! The expirer: feeds core's [`expirer`], as `actors/host/src/leader/expirer.rs` does.

use bellwether_core::job::JobRecord;
use bellwether_core::machine::expirer::{self, Effect, Event, Item};
use bellwether_core::name::JobId;
use bellwether_core::outcome::Outcome;
use bellwether_core::path;
use bellwether_core::time::WallMillis;
use bellwether_core::txn::Batch;
use bellwether_core::wire;

use super::{Place, SWEEP};
use crate::node::context::Context;
use crate::zk::{ReadResult, Znode};

pub(crate) enum ExpirerMsg {
    Overdue(Vec<(JobId, WallMillis)>),
    Read(Vec<JobId>, ReadResult<Vec<Option<Znode>>>),
    Committed(Batch<Item>, Outcome<()>),
    Resume,
    Sweep,
}

pub(super) struct Expirer {
    place: Place,
    machine: expirer::Expirer,
}

impl Expirer {
    pub(super) fn start(cx: &mut Context<'_>, place: Place) -> Self {
        let expirer = Self { place, machine: expirer::Expirer::new(place.term.epoch) };
        expirer.sweep(cx);
        expirer
    }

    fn sweep(&self, cx: &mut Context<'_>) {
        cx.after(SWEEP, self.place.expirer(ExpirerMsg::Sweep));
    }

    pub(super) fn handle(&mut self, cx: &mut Context<'_>, msg: ExpirerMsg) {
        let event = match msg {
            ExpirerMsg::Overdue(jobs) => Event::Overdue(jobs),
            ExpirerMsg::Read(jobs, Ok(nodes)) => {
                let records = jobs.into_iter().zip(nodes).map(|(job, node)| (job, record(node)));
                Event::Read(records.collect())
            }
            ExpirerMsg::Read(jobs, Err(_)) => Event::ReadFailed(jobs),
            ExpirerMsg::Committed(batch, outcome) => Event::Committed(batch, outcome),
            ExpirerMsg::Resume => Event::Resync,
            ExpirerMsg::Sweep => {
                self.sweep(cx);
                Event::Resync
            }
        };
        self.feed(cx, event);
    }

    fn feed(&mut self, cx: &mut Context<'_>, event: Event) {
        let (zk, place) = (self.place.term.zk, self.place);
        let mut effects = Vec::new();
        self.machine.handle(cx.wall(), event, &mut effects);
        for effect in effects {
            match effect {
                Effect::Read(jobs) => {
                    let paths: Vec<_> = jobs.iter().map(path::record).collect();
                    cx.get_many(zk, paths, move |nodes| place.expirer(ExpirerMsg::Read(jobs, nodes)));
                }
                Effect::Commit(batch) => cx.commit_batch(zk, batch, move |batch, outcome| {
                    place.expirer(ExpirerMsg::Committed(batch, outcome))
                }),
                Effect::Ended(_) => {}
                Effect::FencedOut => place.fenced_out(cx),
            }
        }
    }
}

fn record(node: Option<Znode>) -> Option<(JobRecord, i32)> {
    let node = node?;
    Some((wire::decode(&node.data).ok()?, node.version))
}

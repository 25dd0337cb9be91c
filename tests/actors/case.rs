//! A test case: one pair of actor and message kind, one fault, one cluster, one runtime.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use bellwether::testing::actors::{Fault, Kind, Probe};
use bellwether_testkit::eventually;
use tokio::runtime::{Builder, Handle};
use tokio::time::timeout;

use crate::situations::Situation;
use crate::stage::Stage;

/// The time limit of a case: longer than all its waits.
const LIMIT: Duration = Duration::from_secs(90);

/// The time for tasks to end after the cluster stops: requests in flight are answered, and a killed node's session is
/// closed.
const TASKS_END_WITHIN: Duration = Duration::from_secs(10);

/// The time for the planned fault to be injected: its message was seen in the run without a fault.
const INJECTED_WITHIN: Duration = Duration::from_secs(10);

/// The period of sweeps: short enough for a test to wait for it.
pub(crate) const SWEEP: Duration = Duration::from_millis(200);

/// A situation, with at most one planned fault.
pub(crate) struct Case {
    pub(crate) situation: &'static Situation,
    pub(crate) plan: Option<(&'static str, Kind, Fault)>,
}

/// The result of a case: the counts of messages, or the failure.
pub(crate) struct Report {
    pub(crate) name: String,
    pub(crate) took: Duration,
    pub(crate) outcome: Result<BTreeMap<(&'static str, Kind), usize>, String>,
}

impl Case {
    pub(crate) fn name(&self) -> String {
        match self.plan {
            None => self.situation.name.to_owned(),
            Some((actor, kind, fault)) => format!("{actor} {kind} {fault:?} in {}", self.situation.name),
        }
    }

    /// Runs the case in its own runtime, so its tasks can be counted.
    fn run(&self) -> BTreeMap<(&'static str, Kind), usize> {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let before = Handle::current().metrics().num_alive_tasks();
            let met = timeout(LIMIT, self.play()).await.expect("the case ends within its limit");
            eventually("no task is left", TASKS_END_WITHIN, async || {
                Handle::current().metrics().num_alive_tasks() == before
            })
            .await;
            met
        })
    }

    async fn play(&self) -> BTreeMap<(&'static str, Kind), usize> {
        let probe = if self.situation.sweeping { Probe::sweeping(SWEEP) } else { Probe::new() };
        let planned = self.plan.map(|(actor, kind, fault)| probe.plan(actor, kind, 0, fault));
        let stage = Stage::set(probe.clone(), planned.clone(), self.situation.proxied).await;
        (self.situation.drive)(&stage).await;
        let injected = match &planned {
            None => None,
            Some(planned) => {
                Some(timeout(INJECTED_WITHIN, planned.injected()).await.expect("the fault is injected"))
            }
        };
        stage.check().await;
        if let (Some((actor, _, fault)), Some(injected)) = (self.plan, &injected) {
            match fault {
                Fault::Panic | Fault::Kill => stage.check_death(actor, injected).await,
                // A stalled actor is not restarted, but in this situation a part of the node has died.
                Fault::Stall(_) if actor == "node" => {}
                Fault::Stall(_) => stage.check_spared(injected),
            }
        }
        let names = stage.cluster.nodes().iter().map(|node| node.name().to_owned()).collect::<Vec<_>>();
        // Before the stop, during which no fault is injected.
        let met = probe.met();
        stage.cluster.stop().await.unwrap();
        for name in names {
            let what = format!("no actor of {name} is left");
            eventually(&what, TASKS_END_WITHIN, async || probe.alive(&name).is_empty()).await;
        }
        met
    }
}

/// Runs all cases, some of them in parallel, and returns the reports in order.
pub(crate) fn run_all(cases: Vec<Case>, at_once: usize) -> Vec<Report> {
    let mut reports = cases.iter().map(|_| None).collect::<Vec<_>>();
    let queue = Mutex::new(cases.into_iter().zip(&mut reports));
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap().next();
                    let Some((case, report)) = next else { return };
                    *report = Some(run(case));
                }
            });
        }
    });
    drop(queue);
    reports.into_iter().flatten().collect()
}

fn run(case: Case) -> Report {
    let (name, began) = (case.name(), Instant::now());
    let outcome = thread::scope(|scope| {
        let thread = thread::Builder::new().name(name.clone()).spawn_scoped(scope, || case.run());
        thread.unwrap().join().map_err(|panic| text(panic.as_ref()))
    });
    Report { name, took: began.elapsed(), outcome }
}

/// The message of a panic.
pub(crate) fn text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
}

/// Suppresses the output of planned panics.
pub(crate) fn quiet_planned_panics() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !text(info.payload()).starts_with("planned:") {
            usual(info);
        }
    }));
}

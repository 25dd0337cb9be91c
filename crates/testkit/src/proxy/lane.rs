//! One direction of one connection: a queue between its reader and its writer.
//!
//! The queue gives a delay without a loss of throughput, and puts the end of a connection in its place among the
//! frames. It is unbounded, as tests are small and a bound would be one more way to block.

use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::controls::{Controls, Cut, Flow};
use super::fault::{Gate, Trigger};
use super::frame::Frame;

/// Why a connection ends.
#[derive(Debug)]
pub(super) enum End {
    /// A peer closed it.
    Closed,
    /// The proxy cuts it, and tells the fault that wanted it.
    Cut(Cut, Option<Trigger>),
}

#[derive(Debug)]
enum Item {
    Frame { due: Instant, frame: Frame, hold: Option<(Trigger, Gate)> },
    End(End),
}

/// The reader's side.
#[derive(Debug)]
pub(super) struct Queue {
    items: mpsc::UnboundedSender<Item>,
    controls: watch::Receiver<Controls>,
}

/// The writer's side.
#[derive(Debug)]
pub(super) struct Writer {
    items: mpsc::UnboundedReceiver<Item>,
    controls: watch::Receiver<Controls>,
    flow: fn(&Controls) -> Flow,
}

pub(super) fn lane(controls: watch::Receiver<Controls>, flow: fn(&Controls) -> Flow) -> (Queue, Writer) {
    let (sender, items) = mpsc::unbounded_channel();
    (Queue { items: sender, controls: controls.clone() }, Writer { items, controls, flow })
}

impl Queue {
    pub(super) fn controls(&self) -> Controls {
        *self.controls.borrow()
    }

    pub(super) fn forward(&self, frame: Frame) {
        self.push(frame, Duration::ZERO, None);
    }

    pub(super) fn forward_late(&self, frame: Frame, by: Duration) {
        self.push(frame, by, None);
    }

    pub(super) fn hold(&self, frame: Frame, trigger: Trigger, gate: Gate) {
        self.push(frame, Duration::ZERO, Some((trigger, gate)));
    }

    pub(super) fn end(&self, end: End) {
        self.send(Item::End(end));
    }

    fn push(&self, frame: Frame, late: Duration, hold: Option<(Trigger, Gate)>) {
        let due = Instant::now() + self.controls().delay + late;
        self.send(Item::Frame { due, frame, hold });
    }

    fn send(&self, item: Item) {
        // The writer and this reader are halves of one future: it is gone only if this is too.
        self.items.send(item).expect("a lane's writer outlives its reader");
    }
}

impl Writer {
    /// Writes frames in order until the connection is to end.
    pub(super) async fn run(mut self, to: &mut (impl AsyncWrite + Unpin)) -> End {
        let mut hole = false;
        while let Some(item) = self.items.recv().await {
            match item {
                Item::Frame { due, frame, hold } => {
                    tokio::time::sleep_until(due).await;
                    if let Some((trigger, gate)) = hold {
                        trigger.fire();
                        gate.opened().await;
                    }
                    match self.flow_without_stall().await {
                        Flow::Swallow => hole = true,
                        Flow::Pass if hole => return End::Cut(Cut::Reset, None),
                        Flow::Pass => {
                            if to.write_all(&frame.bytes).await.is_err() {
                                return End::Closed;
                            }
                        }
                        Flow::Stall => {} // The proxy is being dropped.
                    }
                }
                Item::End(End::Closed) => {
                    // Who sits behind a black hole does not see the other side close.
                    let flow = self.flow;
                    drop(self.controls.wait_for(|controls| flow(controls) == Flow::Pass).await);
                    return if hole { End::Cut(Cut::Reset, None) } else { End::Closed };
                }
                Item::End(cut @ End::Cut(..)) => return cut,
            }
        }
        End::Closed
    }

    async fn flow_without_stall(&mut self) -> Flow {
        let flow = self.flow;
        match self.controls.wait_for(|controls| flow(controls) != Flow::Stall).await {
            Ok(controls) => flow(&controls),
            Err(_) => Flow::Stall,
        }
    }
}

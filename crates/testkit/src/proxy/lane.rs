//! One direction of one connection: a queue between its reader and its writer.
//!
//! The queue allows a delay without limiting throughput, and keeps the end of a connection in order with its frames. It
//! is unbounded, because tests are small and a bound could cause a deadlock.

use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::controls::{Controls, Cut, Flow};
use super::fault::{Gate, Trigger};
use super::frame::Frame;

/// The reason why a connection ends.
#[derive(Debug)]
pub(super) enum End {
    /// A peer closed the connection.
    Closed,
    /// The proxy cuts the connection and notifies the fault that requested it.
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
        // The writer and this reader are parts of one future, so they are dropped together.
        self.items.send(item).expect("the writer of a lane outlives its reader");
    }
}

impl Writer {
    /// Writes frames in order until the connection ends.
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
                    // Behind a black hole, a peer does not see that the other side has closed.
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

//! The connection of one client: both directions, the inspection of frames, and the end.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::controls::{Controls, Cut, Events};
use super::fault::{Action, Gate, Plan, Request, Trigger};
use super::frame::{EVENT_XID, Frame};
use super::lane::{End, Queue, lane};
use super::listener::Observed;
use crate::op;

/// The planned fault for the reply to a forwarded request.
#[derive(Debug)]
enum ReplyFate {
    Lost(Cut, Trigger),
    Held(Trigger, Gate),
}

/// Faults by xid. Replies are ordered, but pings and events come between them.
type Fates = Mutex<HashMap<i32, ReplyFate>>;

/// An accepted connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) client: TcpStream,
    pub(super) upstream: SocketAddr,
    pub(super) controls: watch::Receiver<Controls>,
    /// The number of cuts when it was accepted.
    pub(super) born: u64,
    pub(super) plan: Arc<Plan>,
    pub(super) observed: Arc<Observed>,
}

impl Connection {
    /// Serves the connection until a peer, a fault or a cut ends it.
    pub(super) async fn serve(mut self) {
        let Ok(mut server) = TcpStream::connect(self.upstream).await else {
            return reset(self.client); // As a dead server does.
        };
        for socket in [&self.client, &server] {
            // Nagle's delay would distort tests that measure time; without the option they still work.
            drop(socket.set_nodelay(true));
        }
        let end = {
            let (mut from_client, mut to_client) = self.client.split();
            let (mut from_server, mut to_server) = server.split();
            let (requests, to_server_lane) = lane(self.controls.clone(), |controls| controls.to_server);
            let (replies, to_client_lane) = lane(self.controls.clone(), |controls| controls.to_client);
            let fates = Fates::default();
            let session = AtomicI64::new(0);
            let up = run(
                read_requests(&mut from_client, requests, &self.plan, &self.observed, &fates, &session),
                to_server_lane.run(&mut to_server),
            );
            let down = run(
                read_replies(&mut from_server, replies, &self.observed, &fates, &session),
                to_client_lane.run(&mut to_client),
            );
            tokio::select! {
                biased;
                cut = next_cut(&mut self.controls, self.born) => End::Cut(cut, None),
                end = up => end,
                end = down => end,
            }
        };
        finish(end, self.client, server, self.controls).await;
    }
}

/// Runs both ends of a lane. The writer ends it: a finished reader has queued the end after its frames.
async fn run(reader: impl Future<Output = ()>, writer: impl Future<Output = End>) -> End {
    let reader = async {
        reader.await;
        std::future::pending().await
    };
    tokio::select! {
        biased;
        end = writer => end,
        end = reader => end,
    }
}

/// Waits for a cut of the connections that are at least as old as this one.
async fn next_cut(controls: &mut watch::Receiver<Controls>, born: u64) -> Cut {
    match controls.wait_for(|controls| controls.cuts != born).await {
        Ok(controls) => controls.cut,
        Err(_) => Cut::Reset, // The proxy was dropped, and its runtime is about to drop this.
    }
}

async fn read_requests(
    from: &mut (impl AsyncRead + Unpin),
    queue: Queue,
    plan: &Plan,
    observed: &Observed,
    fates: &Fates,
    session: &AtomicI64,
) {
    let mut handshake = true;
    while let Ok(frame) = Frame::read(from).await {
        // The connect request is a frame without a header.
        let header = frame.xid().zip(frame.op()).filter(|_| !std::mem::take(&mut handshake));
        let action = header.and_then(|(xid, op)| {
            let request = Request { xid, op, body: frame.body().get(8..).unwrap_or_default() };
            let session = session.load(Ordering::Acquire);
            if op == op::CLOSE_SESSION {
                observed.closed(session);
            }
            plan.show(session, &request);
            let action = plan.take(&request)?;
            Some((xid, action))
        });
        let (xid, fate) = match action {
            None => {
                queue.forward(frame);
                continue;
            }
            Some((_, Action::LoseRequest(cut, trigger))) => {
                return queue.end(End::Cut(cut, Some(trigger)));
            }
            Some((xid, Action::LoseReply(cut, trigger))) => (xid, ReplyFate::Lost(cut, trigger)),
            Some((xid, Action::HoldReply(trigger, gate))) => (xid, ReplyFate::Held(trigger, gate)),
        };
        fates.lock().unwrap_or_else(PoisonError::into_inner).insert(xid, fate);
        queue.forward(frame);
    }
    queue.end(End::Closed);
}

async fn read_replies(
    from: &mut (impl AsyncRead + Unpin),
    queue: Queue,
    observed: &Observed,
    fates: &Fates,
    session: &AtomicI64,
) {
    match Frame::read(from).await {
        Ok(frame) => {
            if let Some(id) = observed.connect_response(frame.body()) {
                session.store(id, Ordering::Release);
            }
            queue.forward(frame);
        }
        Err(_) => return queue.end(End::Closed),
    }
    while let Ok(frame) = Frame::read(from).await {
        let xid = frame.xid();
        if xid == Some(EVENT_XID) {
            match queue.controls().events {
                Events::Pass => queue.forward(frame),
                Events::Delay(by) => queue.forward_late(frame, by),
                Events::Drop => {}
            }
            continue;
        }
        let fate = xid.and_then(|xid| fates.lock().unwrap_or_else(PoisonError::into_inner).remove(&xid));
        match fate {
            None => queue.forward(frame),
            Some(ReplyFate::Lost(cut, trigger)) => return queue.end(End::Cut(cut, Some(trigger))),
            Some(ReplyFate::Held(trigger, gate)) => queue.hold(frame, trigger, gate),
        }
    }
    queue.end(End::Closed);
}

/// Ends a connection. The server sees at most a FIN, so that it executes the received requests.
async fn finish(end: End, mut client: TcpStream, server: TcpStream, mut controls: watch::Receiver<Controls>) {
    match end {
        End::Closed => {} // Dropping both sockets closes the other side.
        End::Cut(Cut::Reset, trigger) => {
            reset(client);
            drop(server);
            fire(trigger);
        }
        End::Cut(Cut::Fin, trigger) => {
            drop(server);
            // An error means that the client closed the connection first.
            drop(client.shutdown().await);
            fire(trigger);
            // Dropping a socket with unread requests would send a RST.
            drain(&mut client).await;
        }
        End::Cut(Cut::Silence, trigger) => {
            let mut born = controls.borrow_and_update().cuts;
            fire(trigger);
            // Waits until the client gives up, or until a later cut. The server's connection stays open too: the server
            // detects the loss by its own timeout.
            loop {
                let cut = tokio::select! {
                    () = drain(&mut client) => break,
                    cut = next_cut(&mut controls, born) => cut,
                };
                match cut {
                    Cut::Silence => born = controls.borrow_and_update().cuts,
                    Cut::Fin => break,
                    Cut::Reset => {
                        reset(client);
                        break;
                    }
                }
            }
            drop(server);
        }
    }
}

fn fire(trigger: Option<Trigger>) {
    if let Some(trigger) = trigger {
        trigger.fire();
    }
}

/// Reads until the client closes.
async fn drain(client: &mut TcpStream) {
    let mut sink = [0; 4096];
    while matches!(client.read(&mut sink).await, Ok(read) if read > 0) {}
}

/// Closes a socket with a RST.
pub(super) fn reset(socket: TcpStream) {
    // An error means that the peer has closed it, so nothing has to be reset.
    drop(socket.set_zero_linger());
}

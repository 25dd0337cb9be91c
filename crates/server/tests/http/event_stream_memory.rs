//! Memory of the gateway per event stream, counted in allocated bytes that were not freed.
//!
//! Only the gateway runs on this thread. Its callers have their own thread, whose allocations are not counted. So does
//! ZooKeeper's client; all streams share one watch of it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::thread;

use allocation_counter::measure;
use bellwether_gateway::Limits;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::ask::Ask;
use crate::stage::{SOON, Stage};

const STREAMS: usize = 200;

/// Limit for one stream, with its task, timer and entry in the reactor. Measured: 1,792 in a build without
/// optimisation, and 21,384 if hyper kept the connection. `bellwether bench http` also measures the overhead of the
/// allocator.
const MOST_BYTES_EACH: i64 = 3 * 1024;

/// Opens that many streams and waits for the start of each.
fn open(address: SocketAddr, streams: usize) -> Vec<TcpStream> {
    let ask = Ask::get("/v1/events").text();
    let one = || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        stream.write_all(&ask).unwrap();
        let mut heard = Vec::new();
        while !heard.ends_with(b"retry: 2000\n\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            heard.extend(byte);
        }
        stream
    };
    (0..streams).map(|_| one()).collect()
}

#[test]
fn a_connected_event_stream_uses_little_memory() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let limits = Limits::default().streams(2 * STREAMS);
    let stage = runtime.block_on(Stage::with("http-cost", |builder| builder.limits(limits)));
    let (to_callers, asked) = mpsc::channel::<oneshot::Sender<()>>();
    let address = stage.address();
    let callers = thread::spawn(move || {
        let mut kept = Vec::new();
        for opened in asked {
            kept.extend(open(address, STREAMS));
            opened.send(()).unwrap();
        }
        kept.len()
    });
    let more = || {
        let (opened, when) = oneshot::channel();
        to_callers.send(opened).unwrap();
        runtime
            .block_on(async { timeout(SOON, when).await })
            .expect("streams begin in time")
            .expect("streams begin");
    };
    // The first batch pays for allocations that are made once, such as the hub.
    more();
    let held = measure(more);
    let each = held.bytes_current / STREAMS as i64;
    assert!((1..MOST_BYTES_EACH).contains(&each), "{each} bytes each: {held:?}");
    drop(to_callers);
    assert_eq!(callers.join().expect("the callers end"), 2 * STREAMS);
    runtime.block_on(stage.gateway.stop());
}

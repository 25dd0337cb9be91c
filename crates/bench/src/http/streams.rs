//! Event streams: thousands of idle connections, and then one event.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures::future::try_join_all;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::Streams;
use crate::cluster::job;
use crate::process::NodeProcess;
use crate::{count, millis};
use bellwether::client::Client;
use bellwether::error::chain;

/// Connections that are opened concurrently: a listening socket queues at most 1,024.
const AT_ONCE: usize = 200;

/// File descriptors in addition to the connections: for the client, its runtime, and standard streams.
const DESCRIPTORS_BESIDE: usize = 500;

const PATIENCE: Duration = Duration::from_secs(60);

/// Time for the allocator to return or reserve memory.
const SETTLED_AFTER: Duration = Duration::from_secs(1);

/// Raises the limit of file descriptors for this process and its children, if the system allows it.
pub(super) fn raise_descriptors(connections: usize) -> Result<(), String> {
    let wanted = (connections + DESCRIPTORS_BESIDE) as u64;
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(|error| chain(&error))?;
    if soft >= wanted {
        return Ok(());
    }
    if hard < wanted {
        return Err(format!(
            "{wanted} file descriptors are needed, but {hard} are allowed: raise `ulimit -Hn`, or measure fewer streams"
        ));
    }
    setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).map_err(|error| chain(&error))
}

pub(super) async fn measure(
    streams: usize,
    client: &Client,
    gateway: &NodeProcess,
    at: SocketAddr,
) -> Result<Streams, String> {
    // The first stream starts the hub, which all streams share.
    let mut open = vec![connect(at).await?];
    sleep(SETTLED_AFTER).await;
    let bytes_before = gateway.bytes()?;
    while open.len() <= streams {
        let few = AT_ONCE.min(streams + 1 - open.len());
        open.extend(try_join_all((0..few).map(|_| connect(at))).await?);
    }
    sleep(SETTLED_AFTER).await;
    let bytes = gateway.bytes()?;

    let started = Instant::now();
    let job = client.submit(job(0)).await.map_err(|error| chain(&error))?;
    let heard = open.iter_mut().map(|stream| hear(stream, job.id().as_str()));
    let heard = timeout(PATIENCE, try_join_all(heard)).await;
    heard.map_err(|_| "a stream did not get the event in time".to_owned())??;
    let last_event_ms = millis(started.elapsed());
    sleep(SETTLED_AFTER).await;
    let after = gateway.bytes()?;
    let per_stream = |bytes: u64| {
        count(usize::try_from(bytes.saturating_sub(bytes_before)).unwrap_or(usize::MAX)) / count(streams)
    };
    Ok(Streams {
        streams,
        bytes_before,
        bytes,
        bytes_per_stream: per_stream(bytes),
        bytes_per_stream_after_events: per_stream(after),
        last_event_ms,
    })
}

/// Opens a stream and waits for its head and its first line.
async fn connect(at: SocketAddr) -> Result<TcpStream, String> {
    let mut stream = TcpStream::connect(at).await.map_err(|error| chain(&error))?;
    let ask = b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n";
    stream.write_all(ask).await.map_err(|error| chain(&error))?;
    let head = hear(&mut stream, "retry: ");
    timeout(PATIENCE, head).await.map_err(|_| "a stream did not begin in time".to_owned())??;
    Ok(stream)
}

/// Reads until a text was received.
async fn hear(stream: &mut TcpStream, text: &str) -> Result<(), String> {
    let mut heard = Vec::new();
    while !heard.windows(text.len()).any(|window| window == text.as_bytes()) {
        if stream.read_buf(&mut heard).await.map_err(|error| chain(&error))? == 0 {
            return Err(format!("a stream ended: {}", String::from_utf8_lossy(&heard)));
        }
    }
    Ok(())
}

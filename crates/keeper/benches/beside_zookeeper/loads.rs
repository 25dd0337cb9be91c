//! The loads, which are the same for both servers.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::client::{Client, Run};
use crate::wire;

/// Znodes that writes and reads cycle through, so that a batch does not shrink to one row.
const SPREAD: usize = 1_000;
const SPREAD_PARENT: &str = "/spread";
/// Limits of single creates and of creates in multis per measurement: the requests are encoded in advance.
const CREATES: usize = 60_000;
const MULTI_CREATES: usize = 300_000;
const DATA: [u8; 100] = [b'd'; 100];
/// Operations per multi.
const MULTI: usize = 100;
const MULTI_OPERATIONS: f64 = 100.0;
/// Multis in flight: enough that neither side waits for the other.
const MULTI_WINDOW: usize = 8;
const WINDOW: usize = 256;
const WATCHERS: usize = 4;
/// Changes that each watcher receives.
const CHANGES: u64 = 20_000;
/// Znodes for the measurements of memory and restart, and the size of their data.
pub(crate) const MANY: usize = 100_000;
const MANY_DATA: [u8; 200] = [b'm'; 200];

/// A load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Load {
    /// setData with this many requests in flight.
    SetData(usize),
    /// create with this many requests in flight.
    Create(usize),
    /// Pairs of a create and a delete, 256 requests in flight.
    Pairs,
    /// Multis of 100 creates.
    MultiCreate,
    /// Pairs of a multi of 100 creates and one of 100 deletes.
    MultiPairs,
    /// Multi-reads of 100.
    MultiGet,
    /// Notifications to four recursive watchers of one writer.
    Watch,
}

impl Load {
    pub(crate) const ALL: [Self; 10] = [
        Self::SetData(1),
        Self::SetData(16),
        Self::SetData(WINDOW),
        Self::Create(1),
        Self::Create(WINDOW),
        Self::Pairs,
        Self::MultiCreate,
        Self::MultiPairs,
        Self::MultiGet,
        Self::Watch,
    ];

    pub(crate) fn name(self) -> String {
        match self {
            Self::SetData(window) => format!("setData, {window} in flight"),
            Self::Create(window) => format!("create, {window} in flight"),
            Self::Pairs => "create + delete pairs, 256 in flight".to_owned(),
            Self::MultiCreate => "znodes created by multis of 100".to_owned(),
            Self::MultiPairs => "create + delete pairs by multis of 100".to_owned(),
            Self::MultiGet => "getData by multi-reads of 100".to_owned(),
            Self::Watch => format!("events to {WATCHERS} recursive watchers"),
        }
    }

    /// Runs the load for `span`.
    pub(crate) fn measure(self, server: SocketAddr, span: Duration) -> io::Result<Measured> {
        let mut client = Client::connect(server)?;
        match self {
            Self::SetData(window) => {
                let frames =
                    names(SPREAD_PARENT, SPREAD).iter().map(|path| wire::set_data(path, &DATA)).collect();
                Ok(operations(client.run(window, false, cycle(frames, span))?, 1.0))
            }
            Self::Create(window) => {
                let parent = fresh(&mut client)?;
                let frames = names(&parent, CREATES).iter().map(|path| wire::create(path, &DATA)).collect();
                let run = client.run(window, false, once(frames, span))?;
                sweep(&mut client, &parent, run.replies)?;
                Ok(operations(run, 1.0))
            }
            Self::Pairs => {
                let parent = fresh(&mut client)?;
                let paths = names(&parent, SPREAD);
                let frames = paths.iter().flat_map(|path| [wire::create(path, &DATA), wire::delete(path)]);
                Ok(operations(client.run(WINDOW, false, cycle(frames.collect(), span))?, 0.5))
            }
            Self::MultiCreate => {
                let parent = fresh(&mut client)?;
                let paths = names(&parent, MULTI_CREATES);
                let frames = paths.chunks(MULTI).map(|paths| wire::multi_create(paths, &DATA)).collect();
                let run = client.run(MULTI_WINDOW, true, once(frames, span))?;
                sweep(&mut client, &parent, run.replies * MULTI as u64)?;
                Ok(operations(run, MULTI_OPERATIONS))
            }
            Self::MultiPairs => {
                let parent = fresh(&mut client)?;
                let paths = names(&parent, SPREAD);
                let frames = paths
                    .chunks(MULTI)
                    .flat_map(|paths| [wire::multi_create(paths, &DATA), wire::multi_delete(paths)]);
                Ok(operations(
                    client.run(MULTI_WINDOW, true, cycle(frames.collect(), span))?,
                    MULTI_OPERATIONS / 2.0,
                ))
            }
            Self::MultiGet => {
                let paths = names(SPREAD_PARENT, SPREAD);
                let frames = paths.chunks(MULTI).map(wire::multi_get).collect();
                Ok(operations(client.run(MULTI_WINDOW, true, cycle(frames, span))?, MULTI_OPERATIONS))
            }
            Self::Watch => watch(client, server),
        }
    }
}

/// Creates [`MANY`] znodes; returns the path of the last one.
pub(crate) fn fill(server: SocketAddr) -> io::Result<String> {
    let mut client = Client::connect(server)?;
    let parents = names("/many", MANY / SPREAD);
    client.call(&wire::create("/many", b""))?;
    let mut frames = parents.iter().flat_map(|parent| {
        let children = names(parent, SPREAD);
        let children = children.chunks(MULTI).map(|paths| wire::multi_create(paths, &MANY_DATA));
        std::iter::once(wire::multi_create(std::slice::from_ref(parent), b""))
            .chain(children.collect::<Vec<_>>())
    });
    client.run(MULTI_WINDOW, true, |out| frames.next().map(|frame| out.extend(frame)).is_some())?;
    Ok(format!("{}/{:08}", parents[parents.len() - 1], SPREAD - 1))
}

/// Creates the znodes that writes and reads cycle through.
pub(crate) fn prepare(server: SocketAddr) -> io::Result<()> {
    let mut client = Client::connect(server)?;
    client.call(&wire::create(SPREAD_PARENT, b""))?;
    names(SPREAD_PARENT, SPREAD).iter().try_for_each(|path| client.call(&wire::create(path, &DATA)))
}

fn watch(mut writer: Client, server: SocketAddr) -> io::Result<Measured> {
    let paths = names(SPREAD_PARENT, SPREAD);
    let frames: Vec<_> = paths.iter().map(|path| wire::set_data(path, &DATA)).collect();
    let mut watchers = Vec::new();
    for _ in 0..WATCHERS {
        let mut watcher = Client::connect(server)?;
        watcher.call(&wire::watch_recursively(SPREAD_PARENT))?;
        watchers.push(watcher);
    }
    let begin = Instant::now();
    let listening: Vec<_> = watchers
        .into_iter()
        .map(|mut watcher| std::thread::spawn(move || watcher.notifications(CHANGES)))
        .collect();
    let mut left = CHANGES;
    let mut frames = frames.iter().cycle();
    writer.run(WINDOW, false, |out| {
        let more = left > 0;
        if more {
            left -= 1;
            out.extend(frames.next().expect("a cycle does not end"));
        }
        more
    })?;
    for listener in listening {
        listener.join().map_err(|_| io::Error::other("a watcher panicked"))??;
    }
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    let operations = (CHANGES * WATCHERS as u64) as f64;
    Ok(Measured { operations, elapsed: begin.elapsed() })
}

/// Cycles through the frames until the time is over, always to the end of a cycle.
fn cycle(frames: Vec<Vec<u8>>, span: Duration) -> impl FnMut(&mut Vec<u8>) -> bool {
    let by = Instant::now() + span;
    let mut at = 0;
    move |out| {
        if at == 0 && Instant::now() >= by {
            return false;
        }
        out.extend(&frames[at]);
        at = (at + 1) % frames.len();
        true
    }
}

/// Sends the frames once, until the time is over.
fn once(frames: Vec<Vec<u8>>, span: Duration) -> impl FnMut(&mut Vec<u8>) -> bool {
    let by = Instant::now() + span;
    let mut frames = frames.into_iter();
    move |out| match frames.next() {
        Some(frame) if Instant::now() < by => {
            out.extend(frame);
            true
        }
        Some(_) | None => false,
    }
}

/// The result of a load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured {
    pub(crate) operations: f64,
    pub(crate) elapsed: Duration,
}

fn operations(run: Run, each: f64) -> Measured {
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    let operations = run.replies as f64 * each;
    Measured { operations, elapsed: run.elapsed }
}

/// Creates an unused parent.
fn fresh(client: &mut Client) -> io::Result<String> {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let path = format!("/fresh-{}", NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
    client.call(&wire::create(&path, b""))?;
    Ok(path)
}

/// Deletes the znodes of a load, so that the next load starts with a small tree.
fn sweep(client: &mut Client, parent: &str, made: u64) -> io::Result<()> {
    let paths = names(parent, usize::try_from(made).expect("the znodes fit into memory"));
    let mut frames = paths.chunks(MULTI).map(wire::multi_delete);
    client.run(MULTI_WINDOW, true, |out| frames.next().map(|frame| out.extend(frame)).is_some())?;
    Ok(())
}

fn names(parent: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{parent}/{n:08}")).collect()
}

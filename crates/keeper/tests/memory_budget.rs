//! Clients that do not read, or that send requests faster than the server answers them, hold a bounded amount of memory together,
//! and other clients are served.
//!
//! Each attack runs in its own process, because the allocator keeps freed memory. The hostile clients run in the same process, on threads
//! of the lowest priority: they get the processor only when the server and the honest client do not need it, as if they ran on other
//! machines. `cargo test --release` also measures how fast the honest client is served.

mod wire;

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bellwether_keeper::server::limits::FRAME_BYTES;
use bellwether_keeper::server::{Keeper, Limits};
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};

use self::wire::*;

/// The allocator of `bellwether keeper`. That of the C library keeps up to 200 MiB of freed requests in its arenas.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const MIB: usize = 1024 * 1024;

/// The budget of this test.
const BUDGET: usize = 64 * MIB;

/// The bound of the process. Buffers grow by doubling, so their capacity is up to twice the bytes in them. Each connection keeps up to
/// five small buffers, and the allocator does not return all freed memory. Without the budget all attacks but the last take
/// more than this. The last one did when each connection kept the memory of its decoded requests.
const BOUND: usize = 4 * BUDGET;

/// Names the attack that this process makes.
const ATTACK: &str = "BELLWETHER_TEST_ATTACK";

/// The duration of a measurement.
const LASTS: Duration = Duration::from_secs(if cfg!(debug_assertions) { 1 } else { 2 });

/// The pause between two writes of the honest client. A debug build, which is not fast enough for figures, leaves the processors to
/// the attack.
const PAUSE: Duration = Duration::from_millis(if cfg!(debug_assertions) { 1 } else { 0 });

/// The longest time in which the honest client must get a reply.
const SERVED: Duration = Duration::from_secs(5);

/// The time limit for all hostile clients to send their bytes. Other test programs may use the processors at the same time.
const ATTACKED: Duration = Duration::from_secs(60);

/// Clients of an attack.
const CLIENTS: usize = 400;

/// Returns a size of the memory of the process in bytes: `VmRSS`, or `VmHWM`, the most it ever was.
fn memory(field: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("proc");
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).expect("a size");
    let kib: usize = line.split_whitespace().next().expect("a number").parse().expect("a number");
    kib * 1024
}

/// An attack: what each client sends before it stops reading.
struct Attack {
    name: &'static str,
    bytes: Vec<u8>,
}

fn attacks() -> [Attack; 5] {
    let reads = (0..100).flat_map(|xid| request(xid, GET_DATA, &read("/big", false))).collect();
    // A frame of the longest length that lacks its last byte.
    let mut unfinished = framed(&vec![0; FRAME_BYTES]);
    unfinished.pop();
    // Behind unread replies: 500 KB that decode to 10 MB.
    let mut decoded: Vec<u8> = (0..16).flat_map(|xid| request(xid, GET_DATA, &read("/big", false))).collect();
    // The same 500 KB alone.
    let mut multi = Vec::new();
    for _ in 0..25_000 {
        // `getData` of "/", without a watch.
        multi.extend(b"\0\0\0\x04\0\xff\xff\xff\xff\0\0\0\x01/\0");
    }
    multi.extend(b"\xff\xff\xff\xff\x01\xff\xff\xff\xff");
    let multi = request(99, MULTI_READ, &multi);
    decoded.extend(&multi);
    let small = (0..10_000).flat_map(|xid| request(xid, PING, &[])).collect();
    [
        Attack { name: "unread replies", bytes: reads },
        Attack { name: "unfinished requests", bytes: unfinished },
        Attack { name: "requests behind unread replies", bytes: decoded },
        Attack { name: "expensive requests", bytes: multi.repeat(2) },
        Attack { name: "many small requests", bytes: small },
    ]
}

/// Sends the bytes of an attack and keeps the connection. `ended` counts the clients that have sent all, or whose connection the server
/// has closed.
async fn attack(address: SocketAddr, bytes: Arc<Vec<u8>>, ended: Arc<AtomicUsize>) -> Wire {
    let (mut wire, _) = Wire::session(address).await;
    // An error means that the server has closed the connection.
    drop(tokio::io::AsyncWriteExt::write_all(&mut wire.stream, &bytes).await);
    ended.fetch_add(1, Ordering::SeqCst);
    wire
}

/// Threads of the lowest priority for hostile clients.
fn weak() -> Runtime {
    let lowest = || rustix::process::setpriority_process(None, 19).expect("a lower priority is allowed");
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).on_thread_start(lowest).enable_all().build().expect("a runtime")
}

/// Writes for a while with one client, and returns the number of writes.
async fn writes(honest: &mut Wire, duration: Duration) -> usize {
    let (begun, mut written) = (Instant::now(), 0);
    while begun.elapsed() < duration {
        let reply = timeout(SERVED, honest.call(7, SET_DATA, &set_data("/small", b"x"))).await;
        assert_eq!(reply.expect("the honest client is served in time").error, 0);
        written += 1;
        if !PAUSE.is_zero() {
            sleep(PAUSE).await;
        }
    }
    written
}

#[test]
fn clients_that_hold_memory_are_closed_and_others_are_served() {
    if let Ok(name) = std::env::var(ATTACK) {
        let attack = attacks().into_iter().find(|attack| attack.name == name).expect("a known attack");
        return Runtime::new().expect("a runtime").block_on(withstand(attack));
    }
    for Attack { name, .. } in attacks() {
        let program = std::env::current_exe().expect("the path of this program");
        let ended =
            Command::new(program).arg("--nocapture").env(ATTACK, name).status().expect("a second process");
        assert!(ended.success(), "{name}: see above");
    }
}

/// Measures the memory and the writes of an honest client during an attack.
#[allow(clippy::print_stdout, reason = "the figures go to stdout")]
async fn withstand(Attack { name, bytes }: Attack) {
    let limits = Limits::default().connection_memory(BUDGET);
    let keeper = Keeper::builder().limits(limits).start().await.expect("a keeper");
    let (mut honest, _) = Wire::session(keeper.address()).await;
    assert_eq!(honest.call(1, CREATE, &create("/big", &vec![7; MIB - 1024], PERSISTENT)).await.error, 0);
    assert_eq!(honest.call(2, CREATE, &create("/small", b"", PERSISTENT)).await.error, 0);
    let alone = writes(&mut honest, LASTS).await;
    let before = memory("VmRSS");
    let (bytes, address, ended) = (Arc::new(bytes), keeper.address(), Arc::new(AtomicUsize::new(0)));
    let hostile = weak();
    let client = |_| hostile.spawn(attack(address, Arc::clone(&bytes), Arc::clone(&ended)));
    let clients: Vec<_> = (0..CLIENTS).map(client).collect();
    let during = writes(&mut honest, 2 * LASTS).await;
    let begun = Instant::now();
    while ended.load(Ordering::SeqCst) < CLIENTS {
        assert!(begun.elapsed() < ATTACKED, "{name}: {ended:?} of {CLIENTS} clients have made the attack");
        writes(&mut honest, Duration::from_millis(100)).await;
    }
    let after = writes(&mut honest, LASTS).await;
    let grown = memory("VmHWM").saturating_sub(before) / MIB;
    println!(
        "{name}: grew by {grown} MiB; {alone} writes without the attack, {} at its beginning, {after} then",
        during / 2
    );
    assert!(grown < BOUND / MIB, "{name}: grew by {grown} MiB");
    drop(clients);
    hostile.shutdown_background();
    keeper.stop().await.expect("a stop without errors");
}

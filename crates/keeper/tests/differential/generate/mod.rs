//! Random scripts. The same seed gives the same script.

mod acl;
mod hostile;
mod pick;
mod read;
mod write;

use fastrand::Rng;

use crate::run::CLIENTS;
use crate::script::{Call, Connect, SessionChoice, Step};

const CREATE: i32 = 1;
const DELETE: i32 = 2;
const EXISTS: i32 = 3;
const GET_DATA: i32 = 4;
const SET_DATA: i32 = 5;
const GET_ACL: i32 = 6;
const SET_ACL: i32 = 7;
const GET_CHILDREN: i32 = 8;
const SYNC: i32 = 9;
const PING: i32 = 11;
const GET_CHILDREN2: i32 = 12;
const CHECK: i32 = 13;
const MULTI: i32 = 14;
const CREATE2: i32 = 15;
const CHECK_WATCHES: i32 = 17;
const REMOVE_WATCHES: i32 = 18;
const CREATE_CONTAINER: i32 = 19;
const CREATE_TTL: i32 = 21;
const MULTI_READ: i32 = 22;
const AUTH: i32 = 100;
const SET_WATCHES: i32 = 101;
const GET_EPHEMERALS: i32 = 103;
const GET_ALL_CHILDREN_NUMBER: i32 = 104;
const SET_WATCHES2: i32 = 105;
const ADD_WATCH: i32 = 106;
const WHO_AM_I: i32 = 107;
const CLOSE_SESSION: i32 = -11;

const PING_XID: i32 = -2;
/// Long enough for a server to handle several requests in one batch.
const BURST: usize = 12;

/// Returns a script of at least `requests` requests.
pub(crate) fn script(seed: u64, requests: usize) -> Vec<Step> {
    let mut rng = Rng::with_seed(seed);
    let mut steps: Vec<Step> = (0..CLIENTS).map(|client| Step::Connect(client, plain())).collect();
    let mut count = 0;
    while count < requests {
        let step = step(&mut rng);
        count += step.requests();
        steps.push(step);
    }
    steps
}

fn plain() -> Connect {
    Connect { session: SessionChoice::New, timeout_ms: 300_000, ahead: 0, read_only: Some(false) }
}

fn step(rng: &mut Rng) -> Step {
    let client = pick::client(rng);
    match rng.u32(..1_000) {
        0..850 => Step::Request(client, call(rng)),
        850..900 => Step::Burst(client, (0..rng.usize(2..BURST)).map(|_| pipelined(rng)).collect()),
        900..925 => {
            // The replies to these can overtake others, so they are not part of a burst.
            let call = match rng.u32(..3) {
                0 => hostile::unknown(rng),
                _ => read::auth(rng),
            };
            Step::Request(client, call)
        }
        925..950 => {
            let call = call(rng);
            Step::Request(client, hostile::damaged(rng, call))
        }
        950..960 => Step::Request(client, Call::new(CLOSE_SESSION, Vec::new(), "closeSession".to_owned())),
        960..968 => Step::Garbage(client, hostile::garbage(rng)),
        968..975 => Step::Stranger(hostile::stranger(rng)),
        975..983 => Step::Hangup(client),
        _ => Step::Connect(client, connect(rng)),
    }
}

/// Returns a request whose effect and whose position of the reply do not depend on the progress of earlier requests.
fn pipelined(rng: &mut Rng) -> Call {
    match rng.u32(..100) {
        0..70 => write(rng),
        _ => read(rng),
    }
}

fn call(rng: &mut Rng) -> Call {
    let mut call = match rng.u32(..100) {
        0..48 => write(rng),
        48..52 => write::set_acl(rng),
        52..99 => read(rng),
        _ => Call { xid: Some(PING_XID), ..Call::new(PING, Vec::new(), "ping".to_owned()) },
    };
    if call.xid.is_none() && rng.u32(..100) == 0 {
        call.xid = Some([0, -3, -5, i32::MIN, i32::MAX][rng.usize(..5)]);
    }
    call
}

fn write(rng: &mut Rng) -> Call {
    match rng.u32(..100) {
        0..48 => write::create(rng),
        48..64 => write::delete(rng),
        64..80 => write::set_data(rng),
        _ => write::multi(rng),
    }
}

fn read(rng: &mut Rng) -> Call {
    match rng.u32(..100) {
        0..18 => read::exists(rng),
        18..36 => read::get_data(rng),
        36..54 => read::get_children(rng),
        54..66 => read::of_path(rng),
        66..68 => read::who_am_i(),
        68..76 => read::multi_read(rng),
        76..84 => read::add_watch(rng),
        84..92 => read::check_or_remove_watches(rng),
        _ => read::set_watches(rng),
    }
}

fn connect(rng: &mut Rng) -> Connect {
    let session = match rng.u32(..20) {
        0..3 => SessionChoice::New,
        3..11 => SessionChoice::Own,
        11..14 => SessionChoice::WrongPassword,
        14..18 => SessionChoice::Of(pick::client(rng)),
        _ => SessionChoice::Unknown,
    };
    // Every granted timeout is longer than a run: the server allows 60 s to 600 s.
    let timeout_ms = [-1, 0, 1, 60_000, 61_234, 300_000, 600_000, 600_001, i32::MAX][rng.usize(..9)];
    let ahead = match rng.u32(..20) {
        0 => 1,
        1 => i64::MAX,
        2..6 => -5,
        _ => 0,
    };
    let read_only = match rng.u32(..8) {
        0 => None,
        1 => Some(true),
        _ => Some(false),
    };
    Connect { session, timeout_ms, ahead, read_only }
}

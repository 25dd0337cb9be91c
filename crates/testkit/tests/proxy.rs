//! Each fault of the proxy, observed by a raw client through the proxy and by a second one without it.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use bellwether_testkit::{
    Cut, Direction, Proxy, RawClient, Request, eventually, eventually_some, namespace, op, shared,
};
use tokio::task::spawn_blocking;

const SOON: Duration = Duration::from_secs(20);
/// Long enough for a frame to arrive, to check that it does not.
const MOMENT: Duration = Duration::from_millis(100);

/// A proxy, a client that uses it, a client that does not, and a chroot for the test.
struct Stage {
    proxy: Proxy,
    victim: RawClient,
    witness: RawClient,
    chroot: String,
}

impl Stage {
    fn set(name: &str) -> Self {
        let namespace = namespace(name);
        let proxy = Proxy::to(&namespace);
        let victim = RawClient::connect(proxy.address()).expect("the proxy lets a client through");
        let witness = RawClient::connect(shared().address()).expect("the server serves");
        let (_, chroot) = namespace.split_once('/').expect("a namespace has a chroot");
        Self { proxy, victim, witness, chroot: format!("/{chroot}") }
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.chroot)
    }
}

/// Runs a blocking call of the victim concurrently with the test; returns the victim.
fn beside<T: Send + 'static>(
    mut victim: RawClient,
    call: impl FnOnce(&mut RawClient) -> T + Send + 'static,
) -> tokio::task::JoinHandle<(RawClient, T)> {
    spawn_blocking(move || {
        let outcome = call(&mut victim);
        (victim, outcome)
    })
}

#[tokio::test]
async fn the_handshake_passes_and_its_session_is_recorded() {
    let stage = Stage::set("handshake");
    assert_eq!(stage.proxy.session().as_ref(), Some(stage.victim.credentials()));
    assert_eq!(stage.proxy.handshakes(), 1);
    assert_eq!(stage.proxy.connect_string(), format!("{}{}", stage.proxy.address(), stage.chroot));
}

#[tokio::test]
async fn a_witness_sees_each_request_with_its_session() {
    let Stage { proxy, mut victim, chroot, .. } = Stage::set("witness");
    let (tell, seen) = std::sync::mpsc::channel();
    let path = format!("{chroot}/job");
    let wanted = path.clone();
    proxy.witness(move |session, request: &Request<'_>| {
        if request.mentions(&wanted) {
            tell.send((session, request.op, request.xid)).expect("the test outlives its proxy");
        }
    });
    victim.create(&path, b"").unwrap();
    assert!(victim.exists(&path).unwrap());
    let session = victim.credentials().session_id;
    let seen: Vec<_> = seen.try_iter().collect();
    assert_eq!(seen, [(session, op::CREATE, 1), (session, op::EXISTS, 2)]);
}

#[tokio::test]
async fn a_swallowed_reply_leaves_the_write_committed_and_the_client_without_a_reply() {
    for (cut, face) in [
        (Cut::Fin, ErrorKind::UnexpectedEof),
        (Cut::Reset, ErrorKind::ConnectionReset),
        (Cut::Silence, ErrorKind::WouldBlock),
    ] {
        let Stage { proxy, mut victim, mut witness, chroot } = Stage::set("lost-reply");
        let path = format!("{chroot}/job");
        let fault = proxy.swallow_reply_and_cut(op::CREATE, cut);
        if cut == Cut::Silence {
            victim.set_patience(Duration::from_secs(1)).unwrap();
        }

        let error = victim.create(&path, b"").unwrap_err();

        fault.fired().await;
        assert_eq!(error.kind(), face, "{cut:?}");
        assert!(witness.exists(&path).unwrap(), "{cut:?}");
    }
}

#[tokio::test]
async fn a_dropped_request_leaves_nothing_committed() {
    let mut stage = Stage::set("lost-request");
    let path = stage.path("job");
    let fault = stage.proxy.drop_request_and_cut(op::CREATE, Cut::Fin);

    assert_eq!(stage.victim.create(&path, b"").unwrap_err().kind(), ErrorKind::UnexpectedEof);

    fault.fired().await;
    assert!(!stage.witness.exists(&path).unwrap());
}

#[tokio::test]
async fn a_fault_can_be_for_one_path_and_happens_once() {
    let mut stage = Stage::set("predicate");
    let [other, chosen] = ["other", "chosen"].map(|name| stage.path(name));
    let fault = stage.proxy.swallow_reply_and_cut(
        |request: &Request<'_>| request.op == op::CREATE && request.mentions("chosen"),
        Cut::Reset,
    );

    stage.victim.create(&other, b"").unwrap();
    assert!(!fault.has_fired());
    stage.victim.create(&chosen, b"").unwrap_err();
    fault.fired().await;

    let mut again = RawClient::attach(stage.proxy.address(), stage.victim.credentials().clone()).unwrap();
    again.create(&stage.path("chosen-too"), b"").unwrap();
}

#[tokio::test]
async fn a_held_reply_arrives_when_it_is_released() {
    let Stage { proxy, victim, mut witness, chroot } = Stage::set("held");
    let path = format!("{chroot}/job");
    let held = proxy.hold_reply(op::CREATE);
    let for_victim = path.clone();
    let call = beside(victim, move |victim| victim.create(&for_victim, b""));

    held.fired().await;
    assert!(witness.exists(&path).unwrap());
    assert!(!call.is_finished());

    held.release();
    call.await.unwrap().1.unwrap();
}

#[tokio::test]
async fn a_cut_ends_current_connections_and_refuse_rejects_new_ones() {
    let mut stage = Stage::set("cut");
    stage.proxy.refuse();
    stage.victim.exists("/").unwrap();

    stage.proxy.cut(Cut::Reset);
    stage.victim.exists("/").unwrap_err();
    RawClient::connect(stage.proxy.address()).unwrap_err();

    stage.proxy.accept();
    RawClient::attach(stage.proxy.address(), stage.victim.credentials().clone()).unwrap();
    assert_eq!(stage.proxy.handshakes(), 2);
}

#[tokio::test]
async fn a_black_hole_loses_frames_one_way_and_resets_the_stream_once_healed() {
    let Stage { proxy, mut victim, mut witness, chroot } = Stage::set("black-hole");
    let path = format!("{chroot}/job");
    victim.set_patience(MOMENT).unwrap();

    proxy.black_hole(Direction::ToClient);
    assert_eq!(victim.create(&path, b"").unwrap_err().kind(), ErrorKind::WouldBlock);
    eventually("the request passed", SOON, async || witness.exists(&path).unwrap()).await;

    proxy.heal();
    victim.set_patience(SOON).unwrap();
    assert_eq!(victim.exists("/").unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_black_hole_to_the_server_drops_requests() {
    let Stage { proxy, mut victim, mut witness, chroot } = Stage::set("black-hole-up");
    let path = format!("{chroot}/job");
    victim.set_patience(MOMENT).unwrap();

    proxy.black_hole(Direction::ToServer);
    assert_eq!(victim.create(&path, b"").unwrap_err().kind(), ErrorKind::WouldBlock);
    assert!(!witness.exists(&path).unwrap());
}

#[tokio::test]
async fn a_stall_delivers_held_frames_once_healed() {
    let Stage { proxy, victim, mut witness, chroot } = Stage::set("stall");
    let path = format!("{chroot}/job");
    proxy.stall(Direction::Both);
    let for_victim = path.clone();
    let call = beside(victim, move |victim| victim.create(&for_victim, b""));
    assert!(!witness.exists(&path).unwrap());
    assert!(!call.is_finished());

    proxy.heal();
    call.await.unwrap().1.unwrap();
    assert!(witness.exists(&path).unwrap());
}

#[tokio::test]
async fn a_delay_applies_to_each_direction() {
    let mut stage = Stage::set("delay");
    stage.proxy.delay(MOMENT);
    let start = Instant::now();
    stage.victim.exists("/").unwrap();
    assert!(start.elapsed() >= 2 * MOMENT, "{:?}", start.elapsed());
}

#[tokio::test]
async fn watch_events_can_be_lost_while_replies_pass() {
    let mut stage = Stage::set("events");
    let path = stage.path("watched");

    stage.proxy.drop_events();
    assert!(!stage.victim.watch(&path).unwrap());
    stage.witness.create(&path, b"").unwrap();
    assert_eq!(stage.victim.next_event(MOMENT).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert!(stage.victim.watch(&path).unwrap());

    stage.proxy.heal();
    stage.witness.set_data(&path, b"new").unwrap();
    stage.victim.next_event(SOON).unwrap();
}

#[tokio::test]
async fn a_delayed_watch_event_arrives_late_but_before_its_change_is_visible() {
    let mut stage = Stage::set("late-events");
    let path = stage.path("watched");
    stage.proxy.delay_events(MOMENT);
    assert!(!stage.victim.watch(&path).unwrap());

    let start = Instant::now();
    stage.witness.create(&path, b"").unwrap();
    assert!(stage.victim.exists(&path).unwrap(), "the reply after the event");
    assert!(start.elapsed() >= MOMENT, "the reply must wait for the event: {:?}", start.elapsed());

    stage.proxy.heal();
    assert!(stage.victim.watch(&path).unwrap());
    stage.witness.set_data(&path, b"new").unwrap();
    stage.victim.next_event(MOMENT).unwrap();
}

#[tokio::test]
async fn an_expired_session_has_no_ephemerals_and_cannot_be_re_attached() {
    let mut stage = Stage::set("expiry");
    let path = stage.path("mine");
    stage.victim.create_ephemeral(&path, b"").unwrap();

    let expired = stage.proxy.expire_session().await;

    assert_eq!(&expired, stage.victim.credentials());
    assert!(!stage.witness.exists(&path).unwrap());
    let back = RawClient::attach(stage.proxy.address(), expired).unwrap_err();
    assert_eq!(back.kind(), ErrorKind::NotFound);
    RawClient::connect(stage.proxy.address()).unwrap();
}

#[tokio::test]
async fn a_proxy_stops_with_its_last_handle() {
    let Stage { proxy, mut victim, .. } = Stage::set("stop");
    let address = proxy.address();
    drop(proxy.clone());
    victim.exists("/").unwrap();

    drop(proxy);
    eventually_some("the listener is closed", SOON, async || RawClient::connect(address).err()).await;
    victim.exists("/").unwrap_err();
}

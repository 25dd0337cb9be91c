use bellwether_core::outcome::{Outcome, Reason, Rejection};
use bellwether_core::time::WallMillis;

use super::*;
use crate::stage::Stage;
use crate::{Ask, Out};

/// A host whose subscribers are numbers and whose refusals are reasons.
enum Numbers {}

impl Opaque for Numbers {
    type Subscriber = u32;
    type Refusal = Reason;
}

type Msg = SessionMsg<Numbers>;

const TIMEOUT: Duration = Duration::from_secs(10);
const FAILOVER: Failover =
    Failover { beat: Duration::from_secs(1), trust: Duration::from_secs(2), wait: Duration::from_secs(3) };
const MADE: Made = Made { session: 1, timeout: TIMEOUT, failover: FAILOVER, clock: None };
const CONNECTED: &str =
    "event Connected { session: 1, timeout: 10s, failover: Failover { beat: 1s, trust: 2s, wait: 3s } }";

fn process() -> Process {
    Process { node: None, host: "h".to_owned() }
}

fn begin() -> Stage<Session<Numbers>> {
    let (stage, out) = Stage::start(Args {
        owner: "test".to_owned(),
        to: "zk".to_owned(),
        reads_clock: Some(process()),
        is_trusted: false,
    });
    assert_eq!(shown(out), ["connect"]);
    stage
}

/// A stage with its first session.
fn up() -> Stage<Session<Numbers>> {
    let mut stage = begin();
    stage.handle(Msg::Made(Ok(MADE)));
    stage
}

fn unreachable() -> Msg {
    Msg::Made(Err(Failure::Transient("no server".to_owned())))
}

fn shown(out: Vec<Out<Session<Numbers>>>) -> Vec<String> {
    out.into_iter().map(show).collect()
}

fn show(out: Out<Session<Numbers>>) -> String {
    match out {
        Out::Tell(Tell::Connect) => "connect".to_owned(),
        Out::Tell(Tell::Follow(generation)) => format!("follow {generation}"),
        Out::Tell(Tell::Forget) => "forget".to_owned(),
        Out::Tell(Tell::Status(Status::Connecting { error })) => format!("status connecting {error:?}"),
        Out::Tell(Tell::Status(status)) => format!("status {status:?}"),
        Out::Tell(Tell::Event(event)) => format!("event {event:?}"),
        Out::Tell(Tell::Greet(who, events)) => format!("greet {who} with {} events", events.len()),
        Out::Tell(Tell::Heartbeat(generation)) => format!("heartbeat {generation}"),
        Out::Tell(Tell::ReadClock(generation)) => format!("read clock {generation}"),
        Out::Tell(Tell::Clock(clock)) => format!("clock {} ms", clock.ahead()),
        Out::Tell(Tell::AskTimeouts(generation)) => format!("ask timeouts {generation}"),
        Out::Tell(Tell::Shorten(timeout)) => format!("shorten {timeout:?}"),
        Out::Tell(Tell::Refuse(why)) => format!("refuse {why}"),
        Out::After(key, ..) | Out::Sweep(key, ..) => format!("after {key:?}"),
        Out::Disarm(key) => format!("disarm {key:?}"),
        Out::Ask(Ask::Commit(commit)) => match commit.ops().next() {
            Some(Op::Create { path, .. }) => format!("create {path}"),
            Some(Op::Set { path, .. }) => format!("set {path}"),
            Some(Op::Delete { path, .. }) => format!("delete {path}"),
            Some(Op::Check { .. }) | None => panic!("the session supervisor writes only its report"),
        },
        _ => panic!("the session supervisor reads nothing"),
    }
}

#[test]
fn a_new_session_is_followed_and_published_before_its_event_is_sent() {
    let out = begin().handle(Msg::Made(Ok(MADE)));
    assert_eq!(
        shown(out),
        ["follow 1", "clock 0 ms", "after Clock", "status Connected", CONNECTED, "heartbeat 1"]
    );
}

#[test]
fn attempts_are_repeated_with_increasing_waits() {
    let mut stage = begin();
    let mut waits = Vec::new();
    for failures in 1..=8 {
        let mut out = stage.handle(unreachable());
        let Some(Out::After(Key::Retry, wait, Msg::Retry)) = out.pop() else { panic!("no retry timer") };
        assert_eq!(shown(out), ["status connecting Some(\"no server\")"]);
        let whole = (RETRY.initial * (1 << (failures - 1))).min(RETRY.max);
        assert!(whole / 2 <= wait && wait <= whole, "the wait after {failures} failures is {wait:?}");
        waits.push(wait);
        assert_eq!(shown(stage.handle(Msg::Retry)), ["connect"]);
    }
    assert!(waits[7] > 10 * waits[0], "{waits:?}");
    stage.handle(Msg::Made(Ok(MADE)));
    stage.handle(Msg::State(1, State::Ended));
    let out = stage.handle(unreachable());
    assert!(matches!(out[1], Out::After(_, wait, _) if wait <= RETRY.initial), "a session resets the wait");
}

#[test]
fn a_refused_namespace_ends_the_supervisor() {
    let out = begin().handle(Msg::Made(Err(Failure::Refused(Reason::NoAuth))));
    assert_eq!(shown(out), ["refuse not authorised"]);
}

#[test]
fn a_connection_lost_and_regained_between_two_reports_causes_two_events() {
    let out = up().handle(Msg::State(1, State::Connected));
    let both = ["status Disconnected", "event Disconnected"];
    let both = both.into_iter().chain(["status Connected", "event Reconnected", "read clock 1"]);
    assert_eq!(shown(out), both.collect::<Vec<_>>());
}

#[test]
fn a_lost_connection_is_reported_once() {
    let mut stage = up();
    let lost = ["status Disconnected", "event Disconnected"];
    assert_eq!(shown(stage.handle(Msg::State(1, State::Disconnected))), lost);
    assert!(stage.handle(Msg::State(1, State::Disconnected)).is_empty());
    let regained = ["status Connected", "event Reconnected", "read clock 1"];
    assert_eq!(shown(stage.handle(Msg::State(1, State::Connected))), regained);
}

#[test]
fn the_next_attempt_starts_before_the_end_of_a_session_is_reported() {
    let mut stage = up();
    let over =
        ["disarm Heartbeat", "disarm Clock", "forget", "connect", "status connecting None", "event Expired"]
            .map(str::to_owned);
    assert_eq!(shown(stage.handle(Msg::State(1, State::Ended))), over);
    assert!(stage.handle(Msg::State(1, State::Ended)).is_empty(), "a session ends once");
    assert_eq!(shown(stage.handle(Msg::Made(Ok(MADE))))[0], "follow 2");
    stage.handle(Msg::State(2, State::Disconnected));
    assert_eq!(shown(stage.handle(Msg::State(2, State::Ended))), over, "also while disconnected");
}

#[test]
fn a_state_of_an_older_generation_is_ignored() {
    let mut stage = up();
    stage.handle(Msg::State(1, State::Ended));
    stage.handle(Msg::Made(Ok(MADE)));
    for state in [State::Connected, State::Disconnected, State::Ended] {
        assert!(stage.handle(Msg::State(1, state)).is_empty(), "{state:?}");
    }
}

#[test]
fn a_late_subscriber_receives_the_current_state_first() {
    let mut stage = begin();
    let mut greeted = |msg: Option<Msg>| {
        msg.into_iter().for_each(|msg| drop(stage.handle(msg)));
        match stage.handle(Msg::Subscribe(7)).pop() {
            Some(Out::Tell(Tell::Greet(7, events))) => events,
            _ => panic!("no greeting"),
        }
    };
    let connected = MADE.connected();
    assert_eq!(greeted(None), []);
    assert_eq!(greeted(Some(Msg::Made(Ok(MADE)))), [connected]);
    let lost = Msg::State(1, State::Disconnected);
    assert_eq!(greeted(Some(lost)), [connected, SessionEvent::Disconnected]);
    assert_eq!(greeted(Some(Msg::State(1, State::Ended))), []);
}

#[test]
fn heartbeats_follow_their_answers_ten_times_per_timeout() {
    let mut stage = up();
    for answer in [Some(Duration::from_millis(1)), None] {
        let mut out = stage.handle(Msg::Answered(1, answer));
        let Some(Out::After(Key::Heartbeat, wait, Msg::Heartbeat)) = out.pop() else { panic!("no timer") };
        assert_eq!(wait, TIMEOUT / HEARTBEATS);
        assert_eq!(shown(stage.handle(Msg::Heartbeat)), ["heartbeat 1"]);
    }
}

/// A stage of a process that relies on its trust, with its first session.
fn trusted() -> Stage<Session<Numbers>> {
    let args = Args { owner: "test".to_owned(), to: "zk".to_owned(), reads_clock: None, is_trusted: true };
    let (mut stage, _) = Stage::start(args);
    stage.handle(Msg::Made(Ok(MADE)));
    stage
}

/// A server that was down, or that was restarted with another `maxSessionTimeout`, may serve the session now.
#[test]
fn the_servers_are_asked_for_their_timeouts_after_each_reconnection() {
    let mut stage = trusted();
    for _ in 0..2 {
        stage.handle(Msg::State(1, State::Disconnected));
        let regained = ["status Connected", "event Reconnected", "ask timeouts 1"];
        assert_eq!(shown(stage.handle(Msg::State(1, State::Connected))), regained);
    }
    let untrusted = shown(up().handle(Msg::State(1, State::Connected)));
    assert!(
        !untrusted.contains(&"ask timeouts 1".to_owned()),
        "nothing depends on the trust of this process"
    );
}

#[test]
fn a_shorter_timeout_counts_for_the_trust_the_heartbeats_and_late_subscribers() {
    let mut stage = trusted();
    let shorter = TIMEOUT / 5;
    assert!(stage.handle(Msg::Granted(1, None)).is_empty(), "no server answered");
    assert!(stage.handle(Msg::Granted(1, Some(TIMEOUT))).is_empty());
    let out = shown(stage.handle(Msg::Granted(1, Some(shorter))));
    assert_eq!(out, ["shorten 2s", "heartbeat 1"]);
    let mut out = stage.handle(Msg::Answered(1, None));
    let Some(Out::After(Key::Heartbeat, wait, Msg::Heartbeat)) = out.pop() else { panic!("no timer") };
    assert_eq!(wait, shorter / HEARTBEATS);
    let greeting = stage.handle(Msg::Subscribe(7)).pop();
    let Some(Out::Tell(Tell::Greet(7, events))) = greeting else { panic!("no greeting") };
    assert_eq!(events, [Made { timeout: shorter, ..MADE }.connected()]);
    assert!(stage.handle(Msg::Granted(1, Some(TIMEOUT))).is_empty(), "another server may serve it next");
}

#[test]
fn a_shorter_timeout_is_noticed_while_disconnected_and_not_taken_for_the_next_session() {
    let mut stage = trusted();
    stage.handle(Msg::State(1, State::Disconnected));
    assert_eq!(shown(stage.handle(Msg::Granted(1, Some(TIMEOUT / 2)))), ["shorten 5s", "heartbeat 1"]);
    stage.handle(Msg::State(1, State::Ended));
    assert!(stage.handle(Msg::Granted(1, Some(TIMEOUT / 5))).is_empty(), "there is no session");
    stage.handle(Msg::Made(Ok(MADE)));
    assert!(stage.handle(Msg::Granted(1, Some(TIMEOUT / 5))).is_empty(), "of the session before");
}

#[test]
fn heartbeats_of_an_older_generation_stop() {
    let mut stage = up();
    stage.handle(Msg::State(1, State::Ended));
    assert!(stage.handle(Msg::Heartbeat).is_empty());
    assert!(stage.handle(Msg::Answered(1, None)).is_empty(), "while there is no session");
    stage.handle(Msg::Made(Ok(MADE)));
    assert!(stage.handle(Msg::Answered(1, None)).is_empty(), "in the next session");
    assert_eq!(shown(stage.handle(Msg::Answered(2, None))), ["after Heartbeat"]);
}

/// The machine's clock, as the stage shows it.
const LOCAL: WallMillis = WallMillis(1_700_000_000_000);
const NOW: Millis = Millis(1_000);

fn made_at(server: u64) -> Msg {
    let clock = Some(Reading { sent: NOW, server: WallMillis(server) });
    Msg::Made(Ok(Made { clock, ..MADE }))
}

#[test]
fn clocks_that_disagree_are_reported_before_the_session_and_again_when_they_agree() {
    let mut stage = begin();
    let out = shown(stage.handle(made_at(LOCAL.0 - 60_000)));
    let wrong = [
        "clock 59998 ms",
        "create /clocks/0000000000000001",
        "event Clock { agrees: false }",
        "after Clock",
        "status Connected",
        CONNECTED,
    ];
    assert_eq!(out[1..7], wrong);
    let Some(Out::Tell(Tell::Greet(7, events))) = stage.handle(Msg::Subscribe(7)).pop() else {
        panic!("no greeting")
    };
    assert_eq!(events[0], SessionEvent::Clock { agrees: false }, "a late subscriber stays out as well");
    assert_eq!(shown(stage.handle(Msg::ReadClock)), ["read clock 1"]);
    let reading = Reading { sent: NOW, server: LOCAL };
    let out = shown(stage.handle(Msg::Clock(1, Some(reading))));
    assert_eq!(
        out,
        ["clock 0 ms", "delete /clocks/0000000000000001", "event Clock { agrees: true }", "after Clock"]
    );
    assert!(stage.handle(Msg::Reported(1, None, Outcome::Applied(()))).is_empty());
    let out = shown(stage.handle(Msg::Clock(1, None)));
    assert_eq!(out, ["clock 0 ms", "after Clock"], "a lost reply changes nothing");
}

/// Reads ZooKeeper's clock, which is behind by these milliseconds. Returns the reports that follow.
fn reports(stage: &mut Stage<Session<Numbers>>, behind: u64) -> Vec<String> {
    let reading = Reading { sent: NOW, server: WallMillis(LOCAL.0 - behind) };
    let out = shown(stage.handle(Msg::Clock(1, Some(reading))));
    out.into_iter().filter(|line| line.contains("/clocks")).collect()
}

#[test]
fn the_report_about_the_clock_follows_each_reading_and_its_outcome() {
    let mut stage = begin();
    stage.handle(made_at(LOCAL.0));
    assert!(reports(&mut stage, 5_000).is_empty());
    assert_eq!(reports(&mut stage, 7_100), ["create /clocks/0000000000000001"]);
    let exists = Outcome::Rejected(Rejection { at: 0, reason: Reason::NodeExists });
    let out = shown(stage.handle(Msg::Reported(1, Some(7), exists)));
    assert_eq!(out, ["set /clocks/0000000000000001"]);
    assert!(stage.handle(Msg::Reported(1, Some(7), Outcome::Applied(()))).is_empty());
    assert_eq!(reports(&mut stage, 0), ["delete /clocks/0000000000000001"]);
}

#[test]
fn the_outcome_of_a_report_of_an_older_generation_is_ignored() {
    let mut stage = begin();
    stage.handle(made_at(LOCAL.0));
    assert_eq!(reports(&mut stage, 7_100).len(), 1);
    stage.handle(Msg::State(1, State::Ended));
    let exists = || Outcome::Rejected(Rejection { at: 0, reason: Reason::NodeExists });
    assert!(stage.handle(Msg::Reported(1, Some(7), exists())).is_empty(), "while there is no session");
    let out = shown(stage.handle(made_at(LOCAL.0 - 7_100)));
    assert!(out.contains(&"create /clocks/0000000000000001".to_owned()), "{out:?}");
    assert!(stage.handle(Msg::Reported(1, Some(7), exists())).is_empty());
}

#[test]
fn a_part_that_subscribed_without_a_session_is_notified_that_the_clocks_disagree() {
    let mut stage = begin();
    stage.handle(made_at(LOCAL.0 - 60_000));
    stage.handle(Msg::State(1, State::Ended));
    stage.handle(Msg::Subscribe(7));
    let out = shown(stage.handle(made_at(LOCAL.0 - 60_000)));
    let (clock, connected) = ("event Clock { agrees: false }", CONNECTED);
    let at = |wanted: &str| out.iter().position(|line| line == wanted).expect("it is reported");
    assert!(at(clock) < at(connected), "{out:?}");
}

/// A virtual machine was paused for a minute: its clocks agree with each other, and not with ZooKeeper's.
#[test]
fn a_new_session_takes_zookeepers_time_whatever_time_was_held() {
    let mut stage = begin();
    stage.handle(made_at(LOCAL.0));
    let wall = |out: Vec<Out<Session<Numbers>>>| {
        let clock = out.iter().find_map(|out| match out {
            Out::Tell(Tell::Clock(clock)) => Some(*clock),
            _ => None,
        });
        clock.expect("the clock is published").wall(NOW, LOCAL)
    };
    let reading = Reading { sent: NOW, server: LOCAL + Duration::from_secs(60) };
    assert_eq!(
        wall(stage.handle(Msg::Clock(1, Some(reading)))),
        LOCAL,
        "within a session ZooKeeper's clock has jumped"
    );
    stage.handle(Msg::State(1, State::Ended));
    assert_eq!(wall(stage.handle(made_at(LOCAL.0 + 60_000))), LOCAL + Duration::from_secs(60));
    stage.handle(Msg::State(2, State::Ended));
    let out = shown(stage.handle(made_at(LOCAL.0)));
    assert!(out.contains(&"event Clock { agrees: true }".to_owned()), "{out:?}");
}

#[test]
fn the_clock_of_an_older_generation_is_ignored() {
    let mut stage = up();
    stage.handle(Msg::State(1, State::Ended));
    let reading = Reading { sent: NOW, server: WallMillis(5) };
    assert!(stage.handle(Msg::Clock(1, Some(reading))).is_empty());
}

#[test]
fn an_election_without_jobs_reads_no_clock() {
    let args = Args { owner: "test".to_owned(), to: "zk".to_owned(), reads_clock: None, is_trusted: true };
    let (mut stage, _) = Stage::<Session<Numbers>>::start(args);
    stage.handle(Msg::Made(Ok(MADE)));
    assert!(!shown(stage.handle(Msg::State(1, State::Connected))).contains(&"read clock 1".to_owned()));
}

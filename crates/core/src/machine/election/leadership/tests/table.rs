//! Tests of every state against every external event.

use super::driver::*;
use crate::machine::election::campaign;
use crate::machine::election::leadership::*;
use crate::outcome::Outcome;

const STATES: [&str; 16] = [
    "no session",
    "out",
    "campaigning",
    "cut off",
    "standby",
    "next",
    "replacing",
    "reading",
    "writing",
    "reading back",
    "active",
    "beating",
    "silent",
    "paused",
    "resuming",
    "leaving",
];

fn state(name: &str) -> Driver {
    let new = Driver::new;
    let next = || new().connected().ran(2, Some(1)).heard(beat_of(1));
    let reading = || new().connected().ran(1, None);
    let run = match name {
        "no session" => new(),
        "out" => new().on(Event::StepDown),
        "campaigning" => new().connected(),
        "cut off" => new().connected().disconnected(),
        "standby" => new().connected().behind(3),
        "next" => next(),
        "replacing" => next().at(WAIT).on(Event::Tick).heard(beat_of(1)),
        "reading" => reading(),
        "writing" => reading().epoch(0, None),
        "reading back" => reading().epoch(0, None).answer(Reply::Claimed(Outcome::Unknown)),
        "active" => new().active(),
        "beating" => new().active().at(BEAT).on(Event::Tick),
        "silent" => new().active().at(TRUST).on(Event::Tick),
        "paused" => new().active().disconnected(),
        "resuming" => new().active().disconnected().connected().looked(Some(1), None),
        "leaving" => new().active().on(Event::StepDown),
        other => panic!("unknown state {other}"),
    };
    let now = run.now.0.max(100);
    run.at(now)
}

/// The module's table, with the effects of each cell. A line reads `state | event | new state: effects`.
#[test]
fn every_state_answers_every_event() {
    let events: [(&str, u64, Event); 14] = [
        ("connected", 0, connected(SESSION)),
        ("new session", 0, connected(8)),
        ("disconnected", 0, Event::Disconnected { session: SESSION }),
        ("disconnected, other session", 0, Event::Disconnected { session: 8 }),
        ("expired", 0, Event::Expired { session: SESSION }),
        ("expired, other session", 0, Event::Expired { session: 8 }),
        ("tick", 0, Event::Tick),
        ("tick after the beat's trust", TRUST, Event::Tick),
        ("tick after the wait", WAIT, Event::Tick),
        ("tick after the lease", LEASE, Event::Tick),
        ("stand", 0, Event::Stand),
        ("step down", 0, Event::StepDown),
        ("fenced out", 0, Event::FencedOut { epoch: 1 }),
        ("fenced out, earlier term", 0, Event::FencedOut { epoch: 0 }),
    ];
    let mut table = String::new();
    for name in STATES {
        for (event_name, now, event) in events.clone() {
            let run = state(name);
            let now = run.now.0.max(now);
            let seen = run.at(now).on(event).seen();
            table += &format!("{name} | {event_name} | {seen}\n");
        }
    }
    assert_eq!(table, include_str!("table.txt"), "\n{table}");
}

/// Replies to abandoned requests change nothing in any state.
#[test]
fn stale_replies_are_dropped_in_every_state() {
    let found = Findings { owner: Some(SESSION), epoch: None, beat: None };
    for name in STATES {
        let stale = campaign::Ticket { campaign: 1, request: 99 };
        for reply in [
            Reply::Read(Outcome::Applied(found)),
            Reply::Read(Outcome::Unknown),
            Reply::Claimed(Outcome::Applied(())),
            Reply::Claimed(Outcome::Unknown),
            Reply::Beaten(Outcome::Applied(())),
            Reply::Beaten(Outcome::Unknown),
            Reply::Changed,
            Reply::Campaign(campaign::Reply::Changed),
            Reply::Campaign(campaign::Reply::Listed(Outcome::Applied(vec![]))),
            Reply::Campaign(campaign::Reply::Created(Outcome::Applied(()))),
        ] {
            let run = state(name);
            let before = run.machine.state();
            let run = run.on(Event::Reply(stale, reply.clone()));
            assert_eq!((run.machine.state(), run.effects.as_slice()), (before, &[][..]), "{name}: {reply:?}");
        }
    }
}

#[test]
fn out_of_the_election_a_new_session_changes_nothing_until_stand() {
    let run = state("out").connected();
    assert_eq!(run.seen(), "idle");
    assert_eq!(run.on(Event::Stand).seen(), "campaigning: tell, look");
    let run = state("leaving").on(Event::Expired { session: SESSION }).connected();
    assert_eq!(run.seen(), "idle");
}

#[test]
fn stepping_down_ends_after_the_candidate_is_deleted() {
    let deleted = || Reply::Campaign(campaign::Reply::Deleted(Outcome::Unknown));
    let run = state("leaving").looked(Some(1), None);
    assert_eq!(run.seen(), "leaving: delete");
    let run = run.answer(deleted()).looked(Some(1), None);
    assert_eq!(run.seen(), "leaving: delete");
    let run = run.answer(deleted()).looked(None, None);
    assert_eq!(run.seen(), "idle: tell");
    assert_eq!(run.on(Event::Stand).seen(), "campaigning: tell, look");
}

#[test]
fn a_fenced_out_leader_returns_to_the_end_of_the_queue() {
    let run = Driver::new().active().on(Event::FencedOut { epoch: 1 });
    assert_eq!(run.seen(), "leaving: tell, lost 1 (fenced-out), look");
    let run = run.looked(Some(1), Some(2));
    let run = run.answer(Reply::Campaign(campaign::Reply::Deleted(Outcome::Applied(()))));
    let run = run.looked(None, Some(2));
    assert_eq!(run.seen(), "campaigning: tell, look");
    assert_eq!(run.ran(3, Some(2)).seen(), "standby: tell, watch, watch beats, read");
}

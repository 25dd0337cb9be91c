use proptest::prelude::*;

use super::*;
use crate::outcome::{Outcome, Reason, Rejection};

const T: Millis = Millis(1_000);

fn handle(machine: &mut WorkerWing, now: Millis, event: Event) -> Vec<Effect> {
    let mut out = Vec::new();
    machine.handle(now, event, &mut out);
    out
}

fn applied() -> Event {
    Event::Committed(Outcome::Applied(()))
}

fn rejected(reason: Reason) -> Event {
    Event::Committed(Outcome::Rejected(Rejection { at: 0, reason }))
}

fn unknown() -> Event {
    Event::Committed(Outcome::Unknown)
}

fn ours(version: i32, draining: bool) -> Event {
    Event::Read(Some(Ephemeral::Ours { version, draining }))
}

/// Plays a script of events with their expected effects; wakes are ignored.
fn play(script: &[(Event, &[Effect])]) -> WorkerWing {
    play_on(WorkerWing::new(GRACE), script)
}

fn play_on(mut machine: WorkerWing, script: &[(Event, &[Effect])]) -> WorkerWing {
    for (n, (event, expected)) in script.iter().enumerate() {
        let mut effects = handle(&mut machine, T, event.clone());
        effects.retain(|effect| !matches!(effect, Effect::WakeAt(_)));
        assert_eq!(effects, *expected, "step {n}: {event:?}");
    }
    machine
}

const REGISTER: &[Effect] = &[Effect::Renew, Effect::Register];
const UNTIL: Millis = Millis(2_000);
const GRACE: Duration = Duration::from_secs(1);

#[test]
fn a_registration_whose_reply_is_lost_is_read_back() {
    for (found, then) in [
        (Ephemeral::Ours { version: 0, draining: false }, &[Effect::Start][..]),
        (Ephemeral::Absent, &[Effect::Register]),
        (Ephemeral::Foreign, REGISTER),
    ] {
        play(&[
            (Event::Connected, REGISTER),
            (unknown(), &[]),
            (Event::Reconnected, &[Effect::Read]),
            (Event::Read(None), &[]),
            (Event::Wake, &[Effect::Read]),
            (Event::Read(Some(found)), then),
        ]);
    }
}

#[test]
fn a_changed_offer_is_written_once_and_again_after_an_unknown_outcome() {
    let said = |outcome| Event::RegistrationUpdated(outcome);
    play(&[
        (Event::Refresh, &[]),
        (Event::Connected, REGISTER),
        (Event::Refresh, &[]),
        (applied(), &[Effect::Start, Effect::UpdateRegistration(0)]),
        (Event::Refresh, &[]),
        (said(Outcome::Applied(())), &[Effect::UpdateRegistration(1)]),
        (said(Outcome::Applied(())), &[]),
        (Event::Refresh, &[Effect::UpdateRegistration(2)]),
        (Event::Disconnected, &[Effect::Hold]),
        (said(Outcome::Unknown), &[]),
        (Event::Reconnected, &[Effect::Read]),
        (ours(3, false), &[Effect::Resume, Effect::UpdateRegistration(3)]),
        (said(Outcome::Rejected(Rejection { at: 0, reason: Reason::BadVersion })), &[]),
        (Event::Wake, &[Effect::Read]),
        (ours(4, false), &[Effect::Resume, Effect::UpdateRegistration(4)]),
        (Event::Drain(GRACE), &[Effect::MarkDraining(4)]),
        (said(Outcome::Applied(())), &[]),
        (rejected(Reason::BadVersion), &[Effect::Read]),
        (ours(5, false), &[Effect::MarkDraining(5)]),
    ]);
}

#[test]
fn an_operators_mark_starts_a_drain_in_every_state_that_reads_it() {
    let drained: &[Effect] = &[Effect::Drain(UNTIL), Effect::Relist];
    let serving: &[(Event, &[Effect])] = &[(Event::Connected, REGISTER), (applied(), &[Effect::Start])];
    let looked = [
        serving,
        &[(Event::Look, &[Effect::Read][..]), (ours(0, false), &[]), (Event::Look, &[Effect::Read])],
    ];
    let seen = play(
        &[&looked.concat()[..], &[(ours(1, true), drained), (Event::Look, &[]), (ours(1, true), &[])]]
            .concat(),
    );
    assert_eq!(seen.stage(), Stage::Draining);
    let resumed: &[Effect] = &[Effect::Resume, Effect::Drain(UNTIL), Effect::Relist];
    let down: &[(Event, &[Effect])] =
        &[(Event::Disconnected, &[Effect::Hold]), (Event::Look, &[]), (Event::Reconnected, &[Effect::Read])];
    let back = play(&[serving, down, &[(ours(1, true), resumed)]].concat());
    assert_eq!(back.stage(), Stage::Draining);
    let started: &[Effect] = &[Effect::Start, Effect::Drain(UNTIL), Effect::Relist];
    play(&[
        (Event::Connected, REGISTER),
        (unknown(), &[]),
        (Event::Wake, &[Effect::Read]),
        (ours(1, true), started),
        (Event::Idle, &[Effect::Retire]),
        (applied(), &[Effect::Stop, Effect::Drained(Drained::Empty)]),
    ]);
}

#[test]
fn writing_the_offer_does_not_erase_an_operators_mark() {
    play(&[
        (Event::Connected, REGISTER),
        (applied(), &[Effect::Start]),
        (Event::Refresh, &[Effect::UpdateRegistration(0)]),
        (Event::RegistrationUpdated(Outcome::Rejected(Rejection { at: 0, reason: Reason::BadVersion })), &[]),
        (Event::Wake, &[Effect::Read]),
        (ours(1, true), &[Effect::Resume, Effect::Drain(UNTIL), Effect::Relist]),
    ]);
}

#[test]
fn a_read_before_the_answer_to_an_offer_counts_its_version_once() {
    play(&[
        (Event::Connected, REGISTER),
        (applied(), &[Effect::Start]),
        (Event::Refresh, &[Effect::UpdateRegistration(0)]),
        (Event::Look, &[Effect::Read]),
        (ours(1, false), &[]),
        (Event::RegistrationUpdated(Outcome::Applied(())), &[]),
        // Not at the version of a mark that an operator may have set since then.
        (Event::Refresh, &[Effect::UpdateRegistration(1)]),
    ]);
}

#[test]
fn a_late_registration_makes_the_second_one_fail_and_is_found() {
    play(&[
        (Event::Connected, REGISTER),
        (unknown(), &[]),
        (Event::Wake, &[Effect::Read]),
        (Event::Read(Some(Ephemeral::Absent)), &[Effect::Register]),
        (rejected(Reason::NodeExists), &[]),
        (Event::Wake, &[Effect::Read]),
        (ours(0, false), &[Effect::Start]),
    ]);
}

#[test]
fn a_repeatedly_rejected_registration_waits_before_each_retry() {
    let again = [Effect::WakeAt(T + RETRY)];
    for (reason, refused) in [
        (Reason::NoNode, &[Effect::MakeParents, Effect::WakeAt(T + RETRY)][..]),
        (Reason::NodeExists, &again),
        (Reason::BadVersion, &again),
        (Reason::NotSent, &again),
    ] {
        let mut machine = WorkerWing::new(GRACE);
        handle(&mut machine, T, Event::Connected);
        for _ in 0..3 {
            assert_eq!(handle(&mut machine, T, rejected(reason.clone())), refused, "{reason}");
            assert_eq!(handle(&mut machine, T, Event::Wake), [Effect::Read]);
            assert_eq!(handle(&mut machine, T, Event::Wake), [], "the request is in flight");
            let absent = Event::Read(Some(Ephemeral::Absent));
            assert_eq!(handle(&mut machine, T, absent), [Effect::Register]);
        }
    }
}

#[test]
fn after_a_reconnection_children_resume_only_after_the_ephemeral_was_read() {
    let serving: &[(Event, &[Effect])] = &[
        (Event::Connected, REGISTER),
        (applied(), &[Effect::Start]),
        (Event::Disconnected, &[Effect::Hold]),
        (Event::Reconnected, &[Effect::Read]),
    ];
    let and = |last| [serving, &[last]].concat();
    // L8: a leader may consider the worker hung because of an assignment that the worker never saw.
    play(&and((ours(0, false), &[Effect::Resume, Effect::UpdateRegistration(0)])));
    let again = [Effect::Stop, Effect::Renew, Effect::Register];
    play(&and((Event::Read(Some(Ephemeral::Absent)), &again)));
    play(&and((Event::Read(Some(Ephemeral::Foreign)), &again)));
    play(&and((Event::Expired, &[Effect::Stop])));
}

#[test]
fn a_dead_child_deletes_the_registration_before_the_next_one() {
    let machine = play(&[
        (Event::Connected, REGISTER),
        (applied(), &[Effect::Start]),
        (Event::ChildDied, &[Effect::Restarted, Effect::Stop, Effect::Leave]),
        (Event::ChildDied, &[]),
        (unknown(), &[]),
        (Event::Reconnected, &[Effect::Leave]),
        (rejected(Reason::NoNode), REGISTER),
        (applied(), &[Effect::Start]),
    ]);
    assert_eq!(machine.stage(), Stage::Serving);
}

#[test]
fn too_many_dead_children_fail_the_wing_after_it_has_left() {
    let serve = |now, machine: &mut WorkerWing| {
        handle(machine, now, Event::Connected);
        handle(machine, now, applied());
    };
    let mut machine = WorkerWing::new(GRACE);
    serve(T, &mut machine);
    for n in 0..100 {
        let now = T + RESTART_WINDOW * n;
        assert!(
            handle(&mut machine, now, Event::ChildDied).contains(&Effect::Restarted),
            "restarts are within the limit"
        );
        handle(&mut machine, now, applied());
        handle(&mut machine, now, applied());
    }
    let now = T + RESTART_WINDOW * 200;
    for _ in 0..MAX_RESTARTS {
        handle(&mut machine, now, Event::ChildDied);
        handle(&mut machine, now, applied());
        handle(&mut machine, now, applied());
    }
    let mut later = machine.clone();
    assert!(handle(&mut later, now + RESTART_WINDOW, Event::ChildDied).contains(&Effect::Restarted));
    assert_eq!(handle(&mut machine, now, Event::ChildDied), [Effect::Stop, Effect::Leave]);
    assert_eq!(handle(&mut machine, now, applied()), [Effect::Fail]);
}

#[test]
fn a_drain_marks_empties_and_retires() {
    play(&[
        (Event::Connected, REGISTER),
        (applied(), &[Effect::Start]),
        (Event::Drain(GRACE), &[Effect::MarkDraining(0)]),
        (unknown(), &[]),
        (Event::Wake, &[Effect::Read]),
        (ours(0, false), &[Effect::MarkDraining(0)]),
        (rejected(Reason::BadVersion), &[Effect::Read]),
        (ours(1, true), &[Effect::Drain(UNTIL), Effect::Relist]),
        (Event::Idle, &[Effect::Retire]),
        (rejected(Reason::NotEmpty), &[Effect::Relist]),
        (Event::Idle, &[Effect::Retire]),
        (unknown(), &[]),
        (Event::Wake, &[Effect::Retire]),
        (rejected(Reason::NoNode), &[Effect::Stop, Effect::Drained(Drained::Empty)]),
        (Event::Connected, &[]),
        (Event::Drain(GRACE), &[Effect::Drained(Drained::Empty)]),
    ]);
}

#[test]
fn a_shorter_grace_shortens_a_drain_and_a_longer_one_does_not() {
    let serving: &[(Event, &[Effect])] = &[(Event::Connected, REGISTER), (applied(), &[Effect::Start])];
    let longer: (Event, &[Effect]) = (Event::Drain(GRACE * 2), &[]);
    let none: Duration = Duration::ZERO;
    let marking: &[(Event, &[Effect])] = &[
        (Event::Drain(GRACE), &[Effect::MarkDraining(0)]),
        longer.clone(),
        (Event::Drain(none), &[]),
        (applied(), &[Effect::Drain(T), Effect::Relist]),
    ];
    play(&[serving, marking].concat());
    let emptying: &[(Event, &[Effect])] = &[
        (Event::Drain(GRACE), &[Effect::MarkDraining(0)]),
        (applied(), &[Effect::Drain(UNTIL), Effect::Relist]),
        longer,
        (Event::Drain(none), &[Effect::Drain(T)]),
        (Event::Drain(none), &[]),
        (Event::Idle, &[Effect::Retire]),
        (Event::Drain(none), &[]),
    ];
    let mut machine = play(&[serving, emptying].concat());
    let gave_up = [Effect::Stop, Effect::Leave, Effect::Drained(Drained::Abandoned)];
    assert_eq!(handle(&mut machine, T + DRAIN_MARGIN, Event::Wake), gave_up);
}

#[test]
fn children_held_at_the_start_of_a_drain_resume_after_the_ephemeral_was_read() {
    let held: &[(Event, &[Effect])] = &[
        (Event::Connected, REGISTER),
        (applied(), &[Effect::Start]),
        (Event::Disconnected, &[Effect::Hold]),
        (Event::Reconnected, &[Effect::Read]),
    ];
    let seen: (Event, &[Effect]) = (ours(0, false), &[Effect::Resume, Effect::MarkDraining(0)]);
    let drain: (Event, &[Effect]) = (Event::Drain(GRACE), &[]);
    play(&[held, &[drain.clone(), seen.clone()]].concat());
    let unread: (Event, &[Effect]) = (Event::Read(None), &[]);
    let look: (Event, &[Effect]) = (Event::Wake, &[Effect::Read]);
    for script in [[unread.clone(), drain.clone(), look.clone(), seen.clone()], [drain, unread, look, seen]] {
        play(&[held, &script, &[(unknown(), &[]), (Event::Wake, &[Effect::Read])]].concat());
    }
    play(&[
        (Event::Connected, REGISTER),
        (applied(), &[Effect::Start]),
        (Event::Disconnected, &[Effect::Hold]),
        (Event::Drain(GRACE), &[]),
        (Event::Reconnected, &[Effect::Resume, Effect::Read]),
        (ours(0, false), &[Effect::MarkDraining(0)]),
    ]);
}

#[test]
fn a_drain_that_cannot_finish_gives_up_at_its_deadline() {
    let mut machine = play(&[
        (Event::Connected, REGISTER),
        (applied(), &[Effect::Start]),
        (Event::Disconnected, &[Effect::Hold]),
        (Event::Drain(GRACE), &[]),
    ]);
    let late = T + GRACE + DRAIN_MARGIN;
    let gave_up = [Effect::Stop, Effect::Leave, Effect::Drained(Drained::Abandoned)];
    assert_eq!(handle(&mut machine, late, Event::Wake), gave_up);
    // The ephemeral is deleted anyway, as soon as possible.
    for refused in [rejected(Reason::NotSent), unknown()] {
        assert_eq!(handle(&mut machine, late, refused), [Effect::WakeAt(late + RETRY)]);
        assert_eq!(machine.stage(), Stage::Leaving);
        assert_eq!(handle(&mut machine, late, Event::Wake), [Effect::Leave]);
    }
    handle(&mut machine, late, applied());
    assert_eq!(machine.stage(), Stage::Over);
}

#[test]
fn a_drain_accepts_the_maximum_grace() {
    let mut machine = play(&[
        (Event::Connected, REGISTER),
        (applied(), &[Effect::Start]),
        (Event::Drain(Duration::MAX), &[Effect::MarkDraining(0)]),
        (applied(), &[Effect::Drain(Millis(u64::MAX)), Effect::Relist]),
    ]);
    assert_eq!(handle(&mut machine, T + RESTART_WINDOW, Event::Wake), []);
    assert_eq!(machine.stage(), Stage::Draining);
}

#[test]
fn a_drain_before_serving_is_kept_or_answered() {
    play(&[(Event::Drain(GRACE), &[Effect::Drained(Drained::Empty)]), (Event::Connected, &[])]);
    play(&[
        (Event::Connected, REGISTER),
        (Event::Drain(GRACE), &[]),
        (applied(), &[Effect::Start, Effect::MarkDraining(0)]),
    ]);
    play(&[
        (Event::Connected, REGISTER),
        (Event::Drain(GRACE), &[]),
        (Event::Expired, &[Effect::Drained(Drained::Empty)]),
    ]);
}

fn events() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => Just(Event::Connected),
        2 => Just(Event::Disconnected),
        2 => Just(Event::Reconnected),
        1 => Just(Event::Expired),
        4 => Just(applied()),
        1 => Just(unknown()),
        1 => Just(rejected(Reason::NoNode)),
        1 => Just(rejected(Reason::NotEmpty)),
        1 => Just(rejected(Reason::NotSent)),
        1 => Just(Event::Read(None)),
        1 => Just(Event::Read(Some(Ephemeral::Absent))),
        2 => Just(ours(0, false)),
        1 => Just(ours(1, true)),
        1 => Just(Event::ChildDied),
        1 => Just(Event::Idle),
        1 => Just(Event::Refresh),
        1 => Just(Event::RegistrationUpdated(Outcome::Applied(()))),
        1 => Just(Event::RegistrationUpdated(Outcome::Unknown)),
        1 => Just(Event::Drain(GRACE)),
        2 => Just(Event::Look),
        2 => Just(Event::Wake),
    ]
}

proptest! {
    /// Children start only when there are none, under a new id each time, and run only while the incarnation serves or
    /// drains. Every drain request is answered.
    #[test]
    fn children_live_exactly_as_long_as_their_incarnation(events in prop::collection::vec(events(), 0..60)) {
        let mut machine = WorkerWing::new(GRACE);
        let (mut children, mut fresh, mut failed, mut asked) = (false, false, false, false);
        let mut events = events;
        events.push(Event::Expired);
        for event in events {
            asked |= matches!(event, Event::Drain(_));
            for effect in handle(&mut machine, T, event.clone()) {
                match effect {
                    Effect::Renew => fresh = true,
                    Effect::Start => {
                        prop_assert!(!children && fresh, "{:?}", event);
                        (children, fresh) = (true, false);
                    }
                    Effect::Stop => children = false,
                    Effect::Drained(_) => asked = false,
                    Effect::Fail => failed = true,
                    Effect::Register
                    | Effect::MakeParents
                    | Effect::TakeOver
                    | Effect::Read
                    | Effect::Hold
                    | Effect::Resume
                    | Effect::MarkDraining(_)
                    | Effect::UpdateRegistration(_)
                    | Effect::Drain(_)
                    | Effect::Relist
                    | Effect::Retire
                    | Effect::Leave
                    | Effect::Restarted
                    | Effect::WakeAt(_) => {}
                }
            }
            if failed {
                return Ok(());
            }
            let living = matches!(machine.stage(), Stage::Serving | Stage::Draining);
            prop_assert_eq!(children, living, "{:?} after {:?}", machine, event);
        }
        prop_assert!(!asked, "{:?}", machine);
    }
}

/// S20: the offer of slots follows the moves.
#[test]
fn a_takeover_comes_between_the_registration_and_the_first_offer() {
    let takes = || WorkerWing::new(GRACE).taking_over();
    let machine = play_on(
        takes(),
        &[
            (Event::Connected, REGISTER),
            (applied(), &[Effect::TakeOver]),
            (Event::Disconnected, &[]),
            (Event::TakeoverInterrupted, &[]),
            (Event::Reconnected, &[Effect::TakeOver]),
            (Event::TakeoverInterrupted, &[]),
            (Event::Wake, &[Effect::TakeOver]),
            (Event::TakenOver, &[Effect::Read]),
            (ours(3, false), &[Effect::Start, Effect::UpdateRegistration(3)]),
            (Event::RegistrationUpdated(Outcome::Applied(())), &[]),
        ],
    );
    assert_eq!(machine.stage(), Stage::Serving);
    play_on(
        takes(),
        &[
            (Event::Connected, REGISTER),
            (unknown(), &[]),
            (Event::Wake, &[Effect::Read]),
            (ours(0, false), &[Effect::TakeOver]),
        ],
    );
}

#[test]
fn a_session_that_expires_in_a_takeover_is_followed_by_a_registration_without_one() {
    let machine = WorkerWing::new(GRACE).taking_over();
    assert!(machine.takes_over());
    let machine = play_on(
        machine,
        &[
            (Event::Connected, REGISTER),
            (applied(), &[Effect::TakeOver]),
            (Event::Expired, &[]),
            (Event::TakeoverInterrupted, &[]),
            (Event::Connected, REGISTER),
            (applied(), &[Effect::Start]),
        ],
    );
    assert!(!machine.takes_over());
}

#[test]
fn a_drain_during_a_takeover_begins_when_it_is_complete() {
    play_on(
        WorkerWing::new(GRACE).taking_over(),
        &[
            (Event::Connected, REGISTER),
            (applied(), &[Effect::TakeOver]),
            (Event::Drain(GRACE), &[]),
            (Event::TakenOver, &[Effect::Read]),
            (ours(1, false), &[Effect::Start, Effect::MarkDraining(1)]),
        ],
    );
}

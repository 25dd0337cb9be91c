//! The texts and the size of a job's view.

use std::time::Duration;

use bellwether_core::change::ChangeKind;
use bellwether_core::job::{Attempt, AttemptEnd, AttemptOutcome, PastAttempt};
use bellwether_core::time::WallMillis;
use uuid::Uuid;

use super::*;
use crate::client::in_memory::{id, kind};

fn record() -> JobRecord {
    JobRecord::new(kind("sum"), Payload::json(*b"1").unwrap(), Uuid::nil(), WallMillis(1))
}

fn view(record: JobRecord) -> JobView {
    JobView::of(id("a"), record)
}

#[test]
fn text_in_json_is_measured_with_its_escapes_or_as_base64() {
    assert_eq!(escaped(b""), 0);
    assert_eq!(escaped(b"abcdef"), 8, "as base64");
    assert_eq!(escaped(b"a\"b\\c"), 8, "base64 has eight characters, too");
    assert_eq!(escaped(b"\"\"\"\"\"\""), 12, "a quote takes two");
    assert_eq!(escaped(b"\\\\\\\\\\\\"), 12);
    assert_eq!(escaped(b"\x00\x1f\n"), 18, "a control character takes six");
    assert_eq!(escaped(&[b'x'; 7]), 12, "7 bytes are three groups of base64");
}

#[test]
fn the_size_of_a_view_is_the_sum_of_its_parts() {
    let plain = view(record());
    let base = PLAIN_BYTES + escaped(b"1");
    assert_eq!(plain.bytes(), base);

    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes)).into_bytes();
    let with = |change: &dyn Fn(&mut JobView)| {
        let mut view = plain.clone();
        change(&mut view);
        view.bytes() - base
    };
    assert_eq!(with(&|view| view.result = Payload::json(text(100)).ok()), escaped(&text(100)));
    assert_eq!(with(&|view| view.error = Some("boom".into())), escaped(b"boom"));
    let progress = Progress::default().with_message(Some(1), "half").unwrap();
    let progress = progress.with_checkpoint(*b"12345").unwrap();
    assert_eq!(with(&|view| view.progress = Some(progress.clone())), escaped(b"half") + 5);
    let groups = [GroupId::new("g1").unwrap(), GroupId::new("group").unwrap()];
    assert_eq!(with(&|view| view.sub_jobs = groups.to_vec()), (2 + 3) + (5 + 3));
    let by = Changed { what: ChangeKind::Cancelled, by: "me\n".into(), at: SystemTime::UNIX_EPOCH };
    assert_eq!(with(&|view| view.changed = Some(by.clone())), escaped(b"me\n"));

    let worker = WorkerId::new(Uuid::from_u128(1));
    let end =
        AttemptEnd { attempt: Attempt { number: 1, worker }, how: AttemptOutcome::Failed, at: WallMillis(2) };
    let past = |error: Option<&str>| {
        PastAttemptView::of(PastAttempt {
            generation: 1,
            assigned_at: None,
            end,
            error: error.map(Into::into),
        })
    };
    let attempts = vec![past(None), past(Some("late")), past(Some("no"))];
    let bytes = 3 * ATTEMPT_BYTES + escaped(b"late") + escaped(b"no");
    assert_eq!(with(&|view| view.attempts = attempts.clone()), bytes);

    let all = JobView {
        result: Payload::json(text(100)).ok(),
        error: Some("boom".into()),
        progress: Some(progress),
        sub_jobs: groups.to_vec(),
        changed: Some(by),
        attempts,
        ..plain
    };
    let parts = escaped(&text(100)) + escaped(b"boom") + escaped(b"half") + 5 + 13 + escaped(b"me\n");
    assert_eq!(all.bytes(), base + parts + bytes);
}

#[test]
fn the_status_has_the_state_and_the_reason_the_progress_or_the_error() {
    let mut view = view(record());
    assert_eq!(view.status(), "queued");
    view.waiting = Some(WaitReason::Busy);
    assert_eq!(view.status(), "queued: the workers that could run it have no free slot");
    view.waiting = Some(WaitReason::Lane);
    assert_eq!(view.status(), "queued: another job of its lane comes first");
    view.behind = Some(id("b"));
    assert_eq!(view.status(), "queued: b comes first in its lane");
    view.error = Some("boom".into());
    assert_eq!(view.status(), "queued: b comes first in its lane", "the reason is newer than the error");
    view.waiting = None;
    assert_eq!(view.status(), "queued: boom");
    (view.state, view.behind) = (State::Running, None);
    view.progress = Progress::default().with_message(Some(40), "loading").ok();
    assert_eq!(view.status(), "running: 40 %: loading");
    view.waiting = Some(WaitReason::WorkerLost);
    assert_eq!(view.status(), "running: its worker was lost; the leader will requeue it");
    view.waiting = None;
    view.state = State::Dead;
    assert_eq!(view.status(), "dead: boom");
    view.state = State::Succeeded;
    assert_eq!(view.status(), "succeeded", "an error of an earlier attempt is not its end");
}

#[test]
fn progress_in_one_line_has_its_percentage_and_its_message() {
    let mut view = view(record());
    assert_eq!(view.progress_text(), None);
    for (percent, message, text) in [
        (Some(40), "loading", Some("40 %: loading")),
        (Some(40), "", Some("40 %")),
        (None, "loading", Some("loading")),
        (None, "", None),
    ] {
        view.progress = Progress::default().with_message(percent, message).ok();
        assert_eq!(view.progress_text().as_deref(), text);
    }
}

#[test]
fn states_and_reasons_are_padded_and_named_as_text() {
    assert_eq!(format!("{:>8}|", State::Dead), "    dead|");
    for state in State::ALL {
        assert_eq!(state.to_string(), state.as_str());
        assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
    }
    assert_eq!(State::ALL.map(State::is_terminal), [false, false, false, true, true, true, false]);
}

#[test]
fn an_outcome_of_an_attempt_is_its_name() {
    for how in AttemptOutcome::ALL {
        let worker = WorkerId::new(Uuid::from_u128(1));
        let end = AttemptEnd { attempt: Attempt { number: 1, worker }, how, at: WallMillis(2) };
        let past = PastAttemptView::of(PastAttempt {
            generation: 1,
            assigned_at: Some(WallMillis(1)),
            end,
            error: None,
        });
        assert_eq!(
            (past.outcome.as_str(), past.outcome.to_string()),
            (how.as_str(), how.as_str().to_owned())
        );
        assert_eq!(past.run_time(), Some(Duration::from_millis(1)));
    }
}

#[test]
fn each_reason_to_wait_has_a_name() {
    let reasons = [
        (WaitReason::UnknownKind, "unknown_kind"),
        (WaitReason::PausedOnWorkers, "paused_on_workers"),
        (WaitReason::Tags, "tags"),
        (WaitReason::NotBefore, "not_before"),
        (WaitReason::WorkerLost, "worker_lost"),
        (WaitReason::NoTurn, "no_turn"),
    ];
    for (reason, name) in reasons {
        assert_eq!(reason.as_str(), name);
    }
}

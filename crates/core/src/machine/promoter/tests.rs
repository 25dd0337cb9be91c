use super::*;
use crate::job::Placement;
use crate::name::Kind;
use crate::outcome::{Reason, Rejection};
use crate::path;
use crate::ready::ReadyEntry;
use crate::txn::Op;

const NOW: WallMillis = WallMillis(100 * 60_000 + 500);

fn key(minute: u64, name: &str) -> DelayedKey {
    (Delay { minute, generation: 1, attempt: 2 }, JobId::new(name).unwrap())
}

fn entry(not_before: u64) -> QueueEntry {
    let placement = Placement::default();
    QueueEntry {
        placement,
        not_before: WallMillis(not_before),
        ..QueueEntry::new(Kind::new("sum").unwrap(), 2, 1)
    }
}

struct Bench(Promoter);

impl Bench {
    fn new() -> Self {
        let mut bench = Self(Promoter::new(7));
        assert_eq!(bench.at(NOW, Event::Resync), [Effect::ListMinutes]);
        bench
    }

    fn at(&mut self, now: WallMillis, event: Event) -> Vec<Effect> {
        let mut out = Vec::new();
        self.0.handle(now, event, &mut out);
        out
    }

    /// Adds a job that waits until `due`.
    fn waiting(&mut self, name: &str, due: u64) {
        let key = key(due / 60_000, name);
        assert_eq!(self.at(NOW, Event::Seen(key.clone())), [Effect::Read(vec![key.clone()])]);
        let after = self.at(NOW, Event::Read(vec![(key, Some(entry(due)))]));
        assert!(due <= NOW.0 || after.is_empty(), "{after:?}");
    }
}

fn batch(effects: &[Effect]) -> Batch<DelayedKey> {
    match effects {
        [Effect::Commit(batch)] => batch.clone(),
        other => panic!("expected one commit, got {other:?}"),
    }
}

#[test]
fn a_job_is_promoted_when_it_is_due_and_not_before() {
    let mut bench = Bench::new();
    bench.waiting("a", NOW.0 + 700);
    assert_eq!(bench.0.next_due(), Some(WallMillis(NOW.0 + 700)));
    assert_eq!((bench.0.len(), bench.0.is_empty()), (1, false));
    assert_eq!(bench.at(WallMillis(NOW.0 + 699), Event::Tick), []);
    let sent = batch(&bench.at(WallMillis(NOW.0 + 700), Event::Tick));
    let paths = sent.ops().map(Op::path).map(str::to_owned).collect::<Vec<_>>();
    let ready = ReadyEntry::of(&JobId::new("a").unwrap(), &entry(NOW.0 + 700));
    assert_eq!(paths, ["/epoch".to_owned(), "/delayed/100/1.2-a".to_owned(), path::ready_entry(&ready)]);
    assert_eq!(sent.ops().next(), Some(&Op::Check { path: "/epoch".into(), version: 7 }));
    assert_eq!(bench.at(NOW, Event::Committed(sent, Outcome::Applied(()))), []);
    assert!(bench.0.is_empty());
}

#[test]
fn far_minutes_are_not_listed_or_read_before_the_horizon() {
    let mut bench = Bench::new();
    assert_eq!(bench.at(NOW, Event::Seen(key(102, "far"))), []);
    assert!(bench.0.is_empty());
    assert_eq!(bench.at(NOW, Event::Minutes(vec![99, 100, 101, 102])), [99, 100, 101].map(Effect::List));
    let later = WallMillis(101 * 60_000);
    assert_eq!(bench.at(later, Event::Tick), [Effect::ListMinutes]);
    assert_eq!(bench.at(later, Event::Minutes(vec![102])), [Effect::List(102)]);
}

#[test]
fn after_a_lost_reply_all_entries_are_read_again() {
    let mut bench = Bench::new();
    bench.waiting("a", NOW.0 + 1);
    let due = WallMillis(NOW.0 + 1);
    let sent = batch(&bench.at(due, Event::Tick));
    assert_eq!(bench.at(due, Event::Committed(sent, Outcome::Unknown)), []);
    assert_eq!(bench.at(due, Event::Tick), [], "nothing is sent while the session is disturbed");
    assert_eq!(bench.at(due, Event::Resync), [Effect::ListMinutes], "the old entry is not promoted again");
    assert_eq!(bench.at(due, Event::Seen(key(100, "a"))), [Effect::Read(vec![key(100, "a")])]);
}

#[test]
fn known_entries_stay_valid_when_a_new_watch_is_set() {
    let mut bench = Bench::new();
    bench.waiting("a", NOW.0 + 1);
    assert_eq!(bench.at(NOW, Event::Resync), [Effect::ListMinutes]);
    assert_eq!(bench.at(NOW, Event::Seen(key(100, "a"))), []);
    let sent = batch(&bench.at(WallMillis(NOW.0 + 1), Event::Tick));
    // Its deletion was not seen.
    let rejected = Outcome::Rejected(Rejection { at: 1, reason: Reason::NoNode });
    assert_eq!(bench.at(NOW, Event::Committed(sent, rejected)), []);
    assert!(bench.0.is_empty());
}

#[test]
fn an_entry_that_an_operator_has_set_is_read_again() {
    let mut bench = Bench::new();
    bench.waiting("a", NOW.0 + 1);
    assert_eq!(bench.at(NOW, Event::Changed(key(100, "a"))), [Effect::Read(vec![key(100, "a")])]);
    bench.at(NOW, Event::Read(vec![(key(100, "a"), Some(entry(NOW.0 + 700)))]));
    assert_eq!(bench.0.next_due(), Some(WallMillis(NOW.0 + 700)));
}

#[test]
fn a_cancelled_job_does_not_block_the_others() {
    let mut bench = Bench::new();
    bench.waiting("a", NOW.0 + 1);
    bench.waiting("b", NOW.0 + 1);
    let due = WallMillis(NOW.0 + 1);
    let sent = batch(&bench.at(due, Event::Tick));
    let rejected = Outcome::Rejected(Rejection { at: 1, reason: Reason::NoNode });
    let again = batch(&bench.at(due, Event::Committed(sent, rejected)));
    assert_eq!(again.keys().collect::<Vec<_>>(), [&key(100, "b")]);
}

#[test]
fn a_deleted_entry_is_not_promoted() {
    let mut bench = Bench::new();
    bench.waiting("a", NOW.0 + 1);
    bench.at(NOW, Event::Gone(key(100, "a")));
    assert_eq!(bench.at(WallMillis(NOW.0 + 1), Event::Tick), []);
    assert_eq!(bench.0.next_due(), None);
}

#[test]
fn a_rejected_epoch_ends_the_term() {
    let mut bench = Bench::new();
    bench.waiting("a", NOW.0 + 1);
    let due = WallMillis(NOW.0 + 1);
    let sent = batch(&bench.at(due, Event::Tick));
    let rejected = Outcome::Rejected(Rejection { at: 0, reason: Reason::BadVersion });
    assert_eq!(bench.at(due, Event::Committed(sent, rejected)), [Effect::FencedOut]);
    assert_eq!(bench.at(due, Event::Tick), []);
}

#[test]
fn an_unanswered_read_is_repeated_after_the_resync() {
    let mut bench = Bench::new();
    bench.at(NOW, Event::Seen(key(100, "a")));
    assert_eq!(bench.at(NOW, Event::ReadFailed(vec![key(100, "a")])), []);
    assert_eq!(bench.at(NOW, Event::Resync), [Effect::ListMinutes, Effect::Read(vec![key(100, "a")])]);
}

#[test]
fn entries_are_read_up_to_the_next_minute_in_full_batches() {
    let mut bench = Bench::new();
    let near = NOW.minute() + HORIZON;
    assert_eq!(bench.at(NOW, Event::Seen(key(near, "a"))), [Effect::Read(vec![key(near, "a")])]);
    for n in 0..=MAX_READ_BATCH {
        assert_eq!(bench.at(NOW, Event::Seen(key(100, &format!("b{n}")))), []);
    }
    assert_eq!(bench.0.len(), MAX_READ_BATCH + 2);
    let [Effect::Read(keys)] = &bench.at(NOW, Event::Read(vec![(key(near, "a"), None)]))[..] else {
        panic!("one read")
    };
    assert_eq!(keys.len(), MAX_READ_BATCH);
}

#[test]
fn a_batch_that_was_not_sent_is_promoted_after_the_resync() {
    for at in [0, 1] {
        let mut bench = Bench::new();
        bench.waiting("a", NOW.0 + 1);
        let due = WallMillis(NOW.0 + 1);
        let sent = batch(&bench.at(due, Event::Tick));
        let rejected = Outcome::Rejected(Rejection { at, reason: Reason::NotSent });
        assert_eq!(bench.at(due, Event::Committed(sent, rejected)), []);
        assert!(matches!(bench.at(due, Event::Resync)[..], [Effect::ListMinutes, Effect::Commit(_)]));
    }
}

#[test]
fn one_transaction_promotes_a_full_batch() {
    let mut bench = Bench::new();
    let keys = (0..=BATCH).map(|n| key(100, &format!("j{n:03}"))).collect::<Vec<_>>();
    for key in &keys {
        bench.at(NOW, Event::Seen(key.clone()));
    }
    let due = |key: &DelayedKey| (key.clone(), Some(entry(NOW.0 + 1)));
    bench.at(NOW, Event::Read(keys[..1].iter().map(due).collect()));
    bench.at(NOW, Event::Read(keys[1..].iter().map(due).collect()));
    assert_eq!(batch(&bench.at(WallMillis(NOW.0 + 1), Event::Tick)).len(), BATCH);
}

use super::*;

fn id(job: &str, fencing_token: i32) -> Id {
    Id { job: JobId::new(job).unwrap(), attempt: 1, fencing_token }
}

fn ids(ids: &[&Id]) -> BTreeSet<Id> {
    ids.iter().copied().cloned().collect()
}

fn poll(table: &mut Table<u32>, running: &[&Id]) -> Option<(Vec<u32>, Instructions)> {
    table.poll(&ids(running), Patience::Wait, |_| true)
}

fn nothing() -> Instructions {
    Instructions { stop: Vec::new(), draining: false }
}

fn stops(stop: &[(&Id, Reason)]) -> Instructions {
    Instructions { stop: stop.iter().map(|(id, reason)| ((*id).clone(), *reason)).collect(), draining: false }
}

fn delivered(attempts: &[(&Id, u32)]) -> Table<u32> {
    let mut table = Table::new(4);
    for (id, attempt) in attempts {
        assert!(table.begin((*id).clone(), *attempt));
    }
    poll(&mut table, &[]).unwrap();
    table
}

#[test]
fn an_attempt_is_delivered_until_the_worker_lists_it() {
    let (a, b) = (id("a", 1), id("b", 1));
    let mut table = Table::new(4);
    assert_eq!(poll(&mut table, &[]), None);
    assert!(table.begin(a.clone(), 1));
    assert_eq!(poll(&mut table, &[]), Some((vec![1], nothing())));
    assert!(table.begin(b.clone(), 2));
    assert_eq!(poll(&mut table, &[]), Some((vec![1, 2], nothing())), "the first answer was lost");
    assert_eq!(poll(&mut table, &[&a]), Some((vec![2], nothing())));
    assert_eq!(poll(&mut table, &[&a, &b]), None);
    assert_eq!(table.poll(&ids(&[&a, &b]), Patience::Over, |_| true), Some((vec![], nothing())));
}

#[test]
fn an_answer_contains_the_oldest_attempts_that_have_room() {
    let mut table = Table::new(4);
    for (n, job) in (0..).zip(["d", "c", "b", "a"]) {
        assert!(table.begin(id(job, 1), n));
    }
    let mut room = 3;
    let some = table.poll(&BTreeSet::new(), Patience::Wait, |_| {
        room -= 1;
        room > 0
    });
    assert_eq!(some, Some((vec![0, 1], nothing())));
    let rest = poll(&mut table, &[&id("d", 1), &id("c", 1)]);
    assert_eq!(rest, Some((vec![2, 3], nothing())));
}

#[test]
fn a_stop_ends_a_poll_once_and_is_repeated_while_the_worker_lists_the_attempt() {
    let a = id("a", 1);
    for ends in [true, false] {
        let mut table = delivered(&[(&a, 1)]);
        table.stop(&a, Reason::Cancelled);
        if ends {
            table.ended(&a, Reason::Closed);
        }
        let instructions = stops(&[(&a, Reason::Cancelled)]);
        assert_eq!(poll(&mut table, &[&a]), Some((vec![], stops(&[(&a, Reason::Cancelled)]))));
        assert_eq!(poll(&mut table, &[&a]), None, "the worker is stopping it");
        table.ended(&a, Reason::Closed);
        assert_eq!(poll(&mut table, &[&a]), None);
        assert_eq!(table.heartbeat(&ids(&[&a])), (vec![], instructions));
        assert_eq!(table.finish(&a), None, "the attempt has ended");
        assert_eq!(poll(&mut table, &[]), None);
        let (attempts, _) = table.poll(&BTreeSet::new(), Patience::Over, |_| true).unwrap();
        assert_eq!(attempts, Vec::<u32>::new(), "a stopped attempt is not delivered again");
        assert!(table.stopped.is_empty(), "the worker has stopped it");
    }
}

#[test]
fn an_attempt_that_ends_before_it_is_delivered_is_forgotten() {
    let a = id("a", 1);
    let mut table = Table::new(4);
    assert!(table.begin(a.clone(), 1));
    table.ended(&a, Reason::HandedBack);
    assert_eq!(poll(&mut table, &[]), None);
    assert!(table.begin(a, 1), "nothing is left of it");
}

#[test]
fn an_unknown_attempt_must_be_stopped() {
    let mut table = Table::<u32>::new(4);
    let a = id("a", 1);
    assert_eq!(poll(&mut table, &[&a]), Some((vec![], stops(&[(&a, Reason::Closed)]))));
    assert_eq!(poll(&mut table, &[&a]), None);
}

#[test]
fn another_token_or_number_is_another_attempt() {
    let a = id("a", 1);
    let mut table = delivered(&[(&a, 1)]);
    assert_eq!(table.finish(&id("a", 2)), None);
    assert_eq!(table.finish(&Id { attempt: 2, ..a.clone() }), None);
    let (open, instructions) = table.heartbeat(&ids(&[&id("a", 2)]));
    assert_eq!((open, instructions), (vec![], stops(&[(&id("a", 2), Reason::Closed)])));
    assert_eq!(table.finish(&a), Some(1));
}

#[test]
fn a_finish_is_repeatable_and_neither_delivered_nor_stopped() {
    let a = id("a", 1);
    let mut table = delivered(&[(&a, 1)]);
    assert_eq!(table.finish(&a), Some(1));
    table.ended(&a, Reason::Closed);
    assert_eq!(table.finish(&a), Some(1));
    assert_eq!(poll(&mut table, &[]), None);
    assert_eq!(poll(&mut table, &[&a]), None);
    assert_eq!(table.heartbeat(&ids(&[&a])), (vec![], nothing()));
    assert!(!table.begin(a, 2), "an id is not reused while its finish may be repeated");
}

#[test]
fn finished_attempts_are_bounded() {
    let mut table = Table::new(0);
    let all = (0..KEPT + 10).map(|n| id("a", i32::try_from(n).unwrap())).collect::<Vec<_>>();
    for id in &all {
        assert!(table.begin(id.clone(), 0));
        assert!(table.finish(id).is_some());
    }
    assert_eq!(table.entries.len(), KEPT);
    assert_eq!(table.finish(&all[9]), None);
    assert!(table.finish(&all[10]).is_some());
}

#[test]
fn stopped_attempts_are_bounded() {
    let mut table = Table::<u32>::new(0);
    let all = (0..9_000).map(|n| id("a", n)).collect::<BTreeSet<_>>();
    table.heartbeat(&all);
    assert_eq!(table.stopped.len(), MAX_STOPPED);
}

#[test]
fn a_drain_ends_one_poll_and_is_repeated() {
    let mut table = Table::<u32>::new(4);
    table.drain();
    table.drain();
    let draining = Instructions { stop: Vec::new(), draining: true };
    assert_eq!(poll(&mut table, &[]), Some((vec![], draining)));
    assert_eq!(poll(&mut table, &[]), None);
    assert!(table.heartbeat(&BTreeSet::new()).1.draining);
}

/// A table that awaits an attempt under the token 2, which the worker has with the token 1.
fn taking_over() -> (Table<u32>, Id, Id) {
    let (was, is) = (id("a", 1), id("a", 2));
    let mut table = Table::new(4);
    table.take_over(was.clone(), is.clone());
    (table, was, is)
}

#[test]
fn an_attempt_that_was_taken_over_is_known_by_both_tokens_and_not_delivered() {
    let (mut table, was, is) = taking_over();
    assert!(table.awaits());
    assert!(table.attach(is.clone(), 1));
    assert!(!table.awaits());
    for id in [&was, &is] {
        assert_eq!(table.fencing_token(id), Some(2));
        assert_eq!(poll(&mut table, &[id]), None, "the worker has it");
        assert_eq!(table.heartbeat(&ids(&[id])), (vec![(id.clone(), 1)], nothing()));
    }
    table.stop(&is, Reason::Cancelled);
    assert_eq!(poll(&mut table, &[&was]), Some((vec![], stops(&[(&was, Reason::Cancelled)]))));
    assert_eq!(table.finish(&was), Some(1));
    assert_eq!(table.finish(&is), Some(1), "a repeat with the other token");
    assert_eq!(table.finishing.len(), 1);
}

#[test]
fn an_attempt_that_was_taken_over_and_is_not_awaited_is_not_offered() {
    let (mut table, was, is) = taking_over();
    table.give_up();
    assert_eq!(poll(&mut table, &[&was]), Some((vec![], stops(&[(&was, Reason::Closed)]))));
    assert!(!table.attach(is.clone(), 1));
    assert_eq!(poll(&mut table, &[]), None);
    assert_eq!(table.fencing_token(&was), None);
    let (mut other, ..) = taking_over();
    assert!(!other.attach(id("b", 2), 1), "another attempt");
}

#[test]
fn an_attempt_that_was_taken_over_and_has_ended_is_stopped() {
    let (mut table, was, is) = taking_over();
    assert!(table.attach(is.clone(), 1));
    table.ended(&is, Reason::HandedBack);
    assert_eq!(poll(&mut table, &[&was]), Some((vec![], stops(&[(&was, Reason::HandedBack)]))));
    assert!(!table.begin(was.clone(), 2), "the old id is still in use");
    // The worker has stopped it.
    assert_eq!(table.poll(&BTreeSet::new(), Patience::Over, |_| true), Some((vec![], nothing())));
    assert!(table.begin(was.clone(), 2), "the id was reused after the record was removed");
    assert_eq!(poll(&mut table, &[]), Some((vec![2], nothing())));
    assert_eq!(table.finish(&was), Some(2));
}

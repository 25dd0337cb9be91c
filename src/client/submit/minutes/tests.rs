//! The limits of delayed jobs.

use super::*;

fn known(entries: usize, all: usize) -> Minutes {
    let count = |entries, there| Count { read: Millis(0), entries, there };
    let minutes = BTreeMap::from([(7, count(entries, true)), (8, count(0, false)), (9, count(0, false))]);
    Minutes(Mutex::new(Known { minutes, all }))
}

#[test]
fn a_full_minute_is_refused_with_its_size() {
    let minutes = known(MAX_BUCKET_ENTRIES - 1, 1);
    assert_eq!(minutes.take(7), Ok(()));
    assert_eq!(minutes.take(7), Err(Full::Minute(MAX_BUCKET_ENTRIES)));
    assert_eq!(minutes.take(8), Ok(()));
    assert_eq!(minutes.take(99), Ok(()), "an unknown minute has capacity");
}

#[test]
fn existing_minutes_accept_jobs_at_the_limit_of_minutes() {
    let minutes = known(1, MAX_MINUTES - 1);
    assert_eq!(minutes.take(8), Ok(()));
    assert_eq!(minutes.take(9), Err(Full::Minutes(MAX_MINUTES)));
    assert_eq!((minutes.take(8), minutes.take(7)), (Ok(()), Ok(())));
}

#[test]
fn each_job_counts_in_its_minute_and_each_new_minute_once() {
    let minutes = known(1, 5);
    for _ in 0..3 {
        minutes.take(7).unwrap();
    }
    minutes.with(|known| assert_eq!((known.minutes[&7].entries, known.all), (4, 5)));
    for _ in 0..2 {
        minutes.take(8).unwrap();
    }
    minutes.with(|known| {
        assert_eq!((known.minutes[&8].entries, known.minutes[&8].there, known.all), (2, true, 6))
    });
}

fn refreshed(
    world: &std::sync::Arc<crate::client::in_memory::World>,
    minutes: &Minutes,
    of: &[u64],
) -> usize {
    let zk = world.zk();
    world.requests();
    world.run(minutes.refresh(&zk, world.now(), of.to_vec())).unwrap();
    world.requests().len()
}

#[test]
fn a_minute_is_read_once_until_its_count_is_too_old() {
    let world = crate::client::in_memory::World::new();
    let minutes = Minutes::default();
    world.tree().put(&path::delayed_minute(7), *b"");
    world.tree().stat(&path::delayed_minute(7), |node| node.children = 3);
    assert_eq!(refreshed(&world, &minutes, &[7, 8, 7]), 2, "the minutes, and their number");
    minutes.with(|known| {
        assert_eq!((known.minutes[&7].entries, known.minutes[&7].there, known.all), (3, true, 1));
        assert_eq!((known.minutes[&8].entries, known.minutes[&8].there), (0, false));
    });
    assert_eq!(refreshed(&world, &minutes, &[8, 7]), 0);
    world.pass(std::time::Duration::from_secs(11));
    assert_eq!(refreshed(&world, &minutes, &[7]), 2);
}

#[test]
fn a_limited_number_of_minutes_is_remembered() {
    let world = crate::client::in_memory::World::new();
    let minutes = Minutes::default();
    let all = (0..REMEMBERED as u64 - 1).collect::<Vec<_>>();
    for page in all.chunks(100) {
        refreshed(&world, &minutes, page);
    }
    refreshed(&world, &minutes, &[100_000]);
    minutes.with(|known| assert_eq!(known.minutes.len(), REMEMBERED));
    refreshed(&world, &minutes, &[100_001]);
    minutes.with(|known| assert_eq!(known.minutes.keys().copied().collect::<Vec<_>>(), [100_001]));
}

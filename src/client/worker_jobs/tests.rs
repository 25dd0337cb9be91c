//! Pages of the jobs of a worker.

use bellwether_core::segment::Members;

use super::*;
use crate::client::in_memory::{Request, World, id, member};
use crate::client::job::Job;

#[test]
fn each_job_of_a_worker_is_in_one_page_without_its_payload() {
    let world = World::new();
    let client = world.client();
    let [worker, other] = [1, 2].map(|n| world.worker(n, &World::registration(&["sum"], 99, &[])));
    let jobs = (0..30).map(|n| Job::new("sum", &n).id(format!("j{n:02}")));
    world.run(client.submit_many(jobs, |_| {}));
    world.run(client.submit(Job::new("sum", &1).id("elsewhere"))).unwrap();
    world.assign(&id("elsewhere"), other);
    (0..30).for_each(|n| world.assign(&id(format!("j{n:02}")), worker));
    for limit in [1, 7, 29, 30, 31] {
        let (mut ids, mut after, mut sizes) = (Vec::new(), None, Vec::new());
        loop {
            let page = world.run(client.list_worker_jobs(worker, after.as_ref(), limit)).unwrap().unwrap();
            assert!(page.items.iter().all(|job| job.payload.is_none() && job.worker == Some(worker)));
            sizes.push(page.items.len());
            ids.extend(page.items.into_iter().map(|job| job.id.to_string()));
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        assert_eq!(ids, (0..30).map(|n| format!("j{n:02}")).collect::<Vec<_>>());
        assert_eq!(sizes.len(), 30_usize.div_ceil(limit), "{sizes:?}");
    }
    let absent = WorkerId::new(uuid::Uuid::from_u128(9));
    assert_eq!(world.run(client.list_worker_jobs(absent, None, 10)).unwrap(), None);
}

#[test]
fn the_open_members_of_a_segment_are_jobs_of_its_worker() {
    let world = World::new();
    let client = world.client();
    let worker = world.worker(1, &World::registration(&["sum"], 99, &[]));
    let segment = world.pack(7, 6);
    world.assign_segment(segment, worker);
    world.succeed_members(segment, worker, Members::one(1));
    world.extract_members(segment, worker, Members::one(4));
    let page = world.run(client.list_worker_jobs(worker, None, 3)).unwrap().unwrap();
    let ids = |page: &Page<JobView, JobId>| page.items.iter().map(|job| job.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&page), [0, 2, 3].map(|n| member(segment, n)));
    let page = world.run(client.list_worker_jobs(worker, page.next.as_ref(), 3)).unwrap().unwrap();
    assert_eq!((ids(&page), page.next), ([4, 5].map(|n| member(segment, n)).to_vec(), None));
}

#[test]
fn a_job_that_ended_or_moved_since_the_inbox_was_listed_is_left_out() {
    let world = World::new();
    let client = world.client();
    let [worker, other] = [1, 2].map(|n| world.worker(n, &World::registration(&["sum"], 99, &[])));
    for name in ["a", "b", "c"] {
        world.run(client.submit(Job::new("sum", &1).id(name))).unwrap();
    }
    world.assign(&id("a"), worker);
    world.assign(&id("b"), other);
    // Names that the list of the inbox still shows.
    for name in ["b", "c", "gone"] {
        world.tree().put(&path::assignment(worker, &id(name)), *b"");
    }
    let entry = world.tree().entry(&id("c"));
    world.tree().delete(&entry);
    world.tree().update(&path::record(&id("c")), |record: bellwether_core::job::JobRecord| {
        record.cancel(bellwether_core::time::WallMillis(2_000))
    });
    let mut listed = false;
    world.script(move |request, tree| {
        if matches!(request, Request::List(paths) if paths[0] == path::inbox(worker)) && listed {
            tree.delete(&path::assignment(worker, &id("b")));
        }
        listed |= matches!(request, Request::List(paths) if paths[0] == path::inbox(worker));
        crate::client::in_memory::Answer::Serve
    });
    let page = world.run(client.list_worker_jobs(worker, None, 10)).unwrap().unwrap();
    let ids = page.items.iter().map(|job| job.id.as_str()).collect::<Vec<_>>();
    assert_eq!((ids, page.next), (vec!["a"], None));
}

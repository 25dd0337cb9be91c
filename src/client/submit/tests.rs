//! Handles, the count of submissions, and a client whose runtime has ended.

use bellwether_core::metric::JOBS_SUBMITTED;
use metrics_exporter_prometheus::PrometheusBuilder;

use super::*;
use crate::client::in_memory::{World, id};

fn job(name: &str) -> Job {
    Job::new("sum", &1).id(name)
}

#[test]
fn a_handle_tells_whether_the_job_existed() {
    let world = World::new();
    let client = world.client();
    let submit = || world.run(client.submit(job("a"))).unwrap();
    let (first, second) = (submit(), submit());
    assert_eq!([first.is_duplicate(), second.is_duplicate()], [false, true]);
    assert_eq!((first.generation(), first.id()), (1, second.id()));
    let other = Job::new("sum", &2).id("a").if_exists(IfExists::Ignore);
    let other = world.run(client.submit(other)).unwrap();
    assert_eq!((other.accepted(), other.is_duplicate()), (Accepted::Other, true));
}

#[test]
fn a_job_that_is_submitted_again_has_a_note_of_who_reopened_it() {
    let world = World::new();
    let client = world.client();
    world.run(client.submit(job("a"))).unwrap();
    world.run(client.cancel(&id("a"))).unwrap();
    let again = world.run(client.submit(job("a").if_exists(IfExists::Again))).unwrap();
    assert_eq!(again.generation(), 2);
    let changed = world.record(&id("a")).changed.unwrap();
    assert_eq!((changed.what, changed.by.to_string()), (ChangeKind::Reopened, "tester".to_owned()));
}

#[test]
fn the_debug_text_of_a_client_has_its_deadline() {
    let text = format!("{:?}", World::new().client());
    assert!(text.starts_with("Client { deadline: "), "{text}");
}

#[test]
fn only_jobs_that_were_created_are_counted() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let count = || {
        let text = recorder.handle().render();
        let line = text.lines().find(|line| line.starts_with(JOBS_SUBMITTED)).unwrap_or(" 0").to_owned();
        line.rsplit(' ').next().unwrap().parse::<u32>().unwrap()
    };
    let world = World::new();
    let client = world.client();
    let submit = |job: Job| metrics::with_local_recorder(&recorder, || world.run(client.submit(job)).is_ok());
    assert!(submit(job("a")) && submit(job("b")));
    assert_eq!(count(), 2);
    assert!(submit(job("a")) && !submit(Job::new("product", &1).id("a")));
    assert_eq!(count(), 2, "one existed, and one was refused");
}

#[test]
fn a_submission_after_the_end_of_its_runtime_is_not_sent() {
    let world = World::new();
    let client = world.client();
    world.end_tasks();
    let error = world.run(client.submit(job("a"))).unwrap_err();
    assert!(matches!(&error, SubmitError::NotSent { reason: Unavailable::Closed, .. }), "{error:?}");
}

/// Thousands of them are in progress in one `submit_many`, and each is moved when it is made.
#[test]
fn a_submission_in_progress_is_small() {
    fn size<F>(_: impl FnOnce(&'static Client, Job) -> F) -> usize {
        size_of::<F>()
    }
    let size = size(|client, job| client.submit(job));
    assert!(size <= 2_048, "{size} bytes");
}

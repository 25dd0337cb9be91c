//! Cancel and retry in every state.

use bellwether::client::{Cancelled, Error, Retried, SubmitError, WaitReason};
use bellwether::{Group, Job, Remedy, State};
use bellwether_core::change::ChangeKind;
use bellwether_core::group::{End, Mark};
use bellwether_core::job::{Attempt, Ending, JobRecord, Payload};
use bellwether_core::outcome::{Outcome, Reason};
use bellwether_core::txn::Op;
use bellwether_core::wire::encode;
use bellwether_core::{path, txn};
use bellwether_testkit::namespace;

use crate::fake_cluster::{FakeCluster, client, id};

#[tokio::test]
async fn a_queued_job_is_cancelled_and_can_be_retried() {
    let to = namespace("cancel");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    let job = client.submit(Job::new("sum", &1).id("a")).await.unwrap();
    assert_eq!(client.retry(job.id()).await.unwrap(), Retried::StillOpen);
    let entry = fake.entry(job.id()).await;
    assert!(fake.zk.get(entry.clone()).await.unwrap().is_some());
    assert_eq!(client.cancel(job.id()).await.unwrap(), Cancelled::Cancelled);
    assert_eq!(fake.zk.get(entry).await.unwrap(), None);
    assert_eq!(client.cancel(job.id()).await.unwrap(), Cancelled::AlreadyTerminal(State::Cancelled));

    assert_eq!(client.retry(job.id()).await.unwrap(), Retried::Reopened(2));
    let view = client.get(job.id()).await.unwrap().unwrap();
    assert_eq!((view.state, view.generation, view.attempt), (State::Queued, 2, 0));
}

#[tokio::test]
async fn a_delayed_job_shows_its_time_and_can_be_cancelled() {
    let to = namespace("cancel-delayed");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    let worker = fake.worker(&["sum"], 1, &[]).await;
    let job = client.submit(Job::new("sum", &1).id("a")).await.unwrap();
    fake.assign(job.id(), worker).await;
    fake.close(job.id(), worker, Ending::Failed("boom".into())).await;
    let view = client.get(job.id()).await.unwrap().unwrap();
    assert_eq!((view.state, view.waiting, view.attempt), (State::Delayed, Some(WaitReason::Backoff), 1));
    assert!(view.not_before.is_some());
    assert_eq!(view.error.as_deref(), Some("boom"));
    assert_eq!(client.cancel(job.id()).await.unwrap(), Cancelled::Cancelled);
    assert_eq!(client.get(job.id()).await.unwrap().unwrap().state, State::Cancelled);
}

#[tokio::test]
async fn a_cancel_of_a_running_job_sets_a_flag_and_its_worker_ends_it() {
    let to = namespace("cancel-running");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    let worker = fake.worker(&["sum"], 1, &[]).await;
    let job = client.submit(Job::new("sum", &1).id("a")).await.unwrap();
    fake.assign(job.id(), worker).await;
    for _ in 0..2 {
        assert_eq!(client.cancel(job.id()).await.unwrap(), Cancelled::Requested(worker));
        assert!(client.get(job.id()).await.unwrap().unwrap().cancel_requested);
    }
    fake.close(job.id(), worker, Ending::Cancelled).await;
    assert_eq!(client.cancel(job.id()).await.unwrap(), Cancelled::AlreadyTerminal(State::Cancelled));
}

#[tokio::test]
async fn a_dead_job_is_retried_and_a_successful_one_is_not() {
    let to = namespace("retry");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    let worker = fake.worker(&["sum"], 1, &[]).await;
    let job = client.submit(Job::new("sum", &1).id("a").max_losses(1)).await.unwrap();
    fake.assign(job.id(), worker).await;
    fake.close(job.id(), worker, Ending::Lost).await;
    assert_eq!(client.get(job.id()).await.unwrap().unwrap().state, State::Dead);
    assert_eq!(client.retry(job.id()).await.unwrap(), Retried::Reopened(2));
    fake.succeed(job.id(), worker, "1").await;
    assert_eq!(client.retry(job.id()).await.unwrap(), Retried::Succeeded);
    assert_eq!(client.cancel(job.id()).await.unwrap(), Cancelled::AlreadyTerminal(State::Succeeded));
}

#[tokio::test]
async fn absent_and_unreadable_jobs_are_left_alone() {
    let to = namespace("left-alone");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    assert_eq!(client.cancel(&id("nobody")).await, Err(Error::NotFound(id("nobody"))));
    assert_eq!(client.retry(&id("nobody")).await, Err(Error::NotFound(id("nobody"))));
    let job = client.submit(Job::new("sum", &1).id("a")).await.unwrap();
    fake.overwrite(path::record(job.id()), b"garbage".to_vec()).await;
    for error in [client.cancel(job.id()).await.unwrap_err(), client.retry(job.id()).await.unwrap_err()] {
        assert!(matches!(error, Error::Unreadable { .. }), "{error}");
    }
    assert_eq!(fake.read(path::record(job.id())).await.data, b"garbage");
}

#[tokio::test]
async fn a_member_of_an_unreadable_group_is_refused_with_that_reason() {
    let to = namespace("group-unreadable");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    let group = client.group(Group::new("sum", "g")).await.unwrap();
    fake.overwrite(path::group(group.id()), b"garbage".to_vec()).await;
    let refused = group.submit(0, Job::new("sum", &1)).await.unwrap_err();
    assert!(matches!(refused, SubmitError::Client(Error::GroupUnreadable { .. })), "{refused}");
    assert_eq!(refused.remedy(), Remedy::GiveUp);
    let refused = group.seal(1).await.unwrap_err();
    assert!(matches!(refused, Error::GroupUnreadable { .. }), "{refused}");
}

#[tokio::test]
async fn a_retry_releases_a_quarantined_job_and_an_earlier_run_cannot_commit() {
    let to = namespace("release");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    let worker = fake.worker(&["sum"], 2, &[]).await;
    let job = client.submit(Job::new("sum", &1).id("a")).await.unwrap();
    fake.assign(job.id(), worker).await;
    fake.close(job.id(), worker, Ending::Released).await;
    fake.assign(job.id(), worker).await;
    fake.set_aside(job.id(), worker).await;
    let (before, version) = fake.record(job.id()).await;
    assert_eq!(client.get(job.id()).await.unwrap().unwrap().state, State::Quarantined);
    assert_eq!(client.cancel(job.id()).await, Err(Error::Quarantined(job.id().clone())));

    assert_eq!(client.retry(job.id()).await.unwrap(), Retried::Released);
    // Nothing but the note of its author, and the mark for the name of its entry.
    let (released, after) = fake.record(job.id()).await;
    assert!(released.changed.is_some_and(|change| change.what == ChangeKind::Released));
    assert_eq!(
        (JobRecord { changed: None, released: false, ..released }, after),
        (before.clone(), version + 1)
    );
    assert_eq!(fake.zk.get(path::quarantine(job.id())).await.unwrap(), None);
    let view = client.get(job.id()).await.unwrap().unwrap();
    assert_eq!((view.state, view.generation, view.attempt), (State::Queued, 1, 1));
    assert_eq!(client.retry(job.id()).await.unwrap(), Retried::StillOpen);

    fake.assign(job.id(), worker).await;
    let attempt = Attempt { number: before.attempts + 1, worker };
    let ending = Ending::Succeeded(Payload::json(*b"1").unwrap());
    let (closed, next) = before.close(attempt, ending.clone(), bellwether_host::clock::local(), 0);
    let zombie = txn::close(job.id(), worker, version, None, &closed, &next);
    let Outcome::Rejected(rejection) = fake.zk.commit(zombie).await else {
        panic!("the version of the record is old")
    };
    assert_eq!(rejection.reason, Reason::BadVersion);
    fake.close(job.id(), worker, ending).await;
    assert_eq!(client.retry(job.id()).await.unwrap(), Retried::Succeeded);
}

#[tokio::test]
async fn a_stale_quarantine_note_does_not_move_the_job() {
    let to = namespace("stale-note");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    let worker = fake.worker(&["sum"], 1, &[]).await;
    let job = client.submit(Job::new("sum", &1).id("a")).await.unwrap();
    fake.note(job.id()).await;
    for state in [State::Queued, State::Running] {
        assert_eq!(client.retry(job.id()).await.unwrap(), Retried::StillOpen);
        assert_eq!(client.get(job.id()).await.unwrap().unwrap().state, state);
        if state == State::Queued {
            fake.assign(job.id(), worker).await;
        }
    }
    assert_eq!(fake.record(job.id()).await.1, 0);
    fake.read(path::quarantine(job.id())).await;
}

/// S7: a cancel succeeds even if an operator deleted parts of the group.
#[tokio::test]
async fn a_waiting_member_is_cancelled_after_an_operator_removed_parts_of_its_group() {
    let to = namespace("cancel-group-by-hand");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    let group = client.group(Group::new("sum", "g")).await.unwrap();
    let gone = |path: String| Op::Delete { path, version: None };
    // Its attempt had sub-jobs, and their group is deleted: the job's own place is deleted with its end.
    let parent = group.submit(0, Job::new("sum", &1)).await.unwrap();
    let (record, _) = fake.record(parent.id()).await;
    fake.overwrite(path::record(parent.id()), encode(&JobRecord { spawned: true, ..record })).await;
    assert_eq!(client.cancel(parent.id()).await.unwrap(), Cancelled::Cancelled);
    assert_eq!(fake.zk.get(path::place(group.id(), 0)).await.unwrap(), None);
    let mark = path::mark(group.id(), Mark::Member(0), End::Cancelled);
    fake.read(mark.clone()).await;
    // The place and the group of this member are deleted.
    let member = group.submit(1, Job::new("sum", &1)).await.unwrap();
    fake.apply([path::place(group.id(), 1), mark, path::mark_chunk(group.id(), 0)].map(gone).into()).await;
    assert_eq!(client.cancel(member.id()).await.unwrap(), Cancelled::Cancelled);
}

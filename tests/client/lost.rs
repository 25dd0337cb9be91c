//! Lost replies, lost requests, lost sessions, and an unreachable ZooKeeper.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether::client::{
    Cancelled, ConnectError, Ended, IfExists, MAX_WATCHED, Purge, Retried, SubmitError, Unavailable,
};
use bellwether::{Client, InvalidConnection, Job, Remedy, State};
use bellwether_core::job::JobRecord;
use bellwether_core::metric::UNKNOWN_OUTCOMES_RESOLVED;
use bellwether_core::wire::decode;
use bellwether_core::{path, txn};
use bellwether_testkit::{
    Cut, Direction, Fault, Proxy, Request, eventually, four_letter_word, namespace, op, shared,
};
use futures::{StreamExt, stream};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use crate::fake_cluster::{FakeCluster, SOON, client, id};

fn multi_about(text: &'static str) -> impl Fn(&Request<'_>) -> bool + Send + 'static {
    move |request| request.op == op::MULTI && request.mentions(text)
}

/// Counts metrics on this test's thread, which also runs its client.
fn counting() -> (PrometheusHandle, impl Drop) {
    let recorder = Box::leak(Box::new(PrometheusBuilder::new().build_recorder()));
    (recorder.handle(), metrics::set_default_local_recorder(recorder))
}

fn resolved(counts: &PrometheusHandle, how: &str) -> u64 {
    let series = format!("{UNKNOWN_OUTCOMES_RESOLVED}{{outcome=\"{how}\"}} ");
    let text = counts.render();
    text.lines().find_map(|line| line.strip_prefix(&series)).map_or(0, |count| count.parse().unwrap())
}

async fn assert_one_queued_job(to: &str, job: &str) {
    let fake = FakeCluster::new(to).await;
    let (record, version) = fake.record(&id(job)).await;
    assert_eq!((record.attempts, version), (0, 0));
    fake.read(fake.entry(&id(job)).await).await;
}

#[tokio::test]
async fn a_submission_with_a_lost_reply_is_accepted_once() {
    for (cut, name) in [(Cut::Fin, "reply-fin"), (Cut::Reset, "reply-rst"), (Cut::Silence, "reply-silence")] {
        let to = namespace(name);
        let (counts, _recorder) = counting();
        let proxy = Proxy::to(&to);
        let client =
            Client::builder(proxy.connect_string()).session_timeout(Duration::from_secs(2)).deadline(SOON);
        let client = client.connect().await.unwrap();
        let fault = proxy.swallow_reply_and_cut(multi_about("lost-reply"), cut);
        let job = client.submit(Job::new("sum", &1).id("lost-reply")).await.unwrap();
        fault.fired().await;
        assert!(!job.is_duplicate(), "{name}: the stored record is our own");
        assert_eq!((resolved(&counts, "applied"), resolved(&counts, "not_applied")), (1, 0), "{name}");
        assert_one_queued_job(&to, "lost-reply").await;
    }
}

#[tokio::test]
async fn a_submission_with_a_lost_request_is_sent_again() {
    for (cut, name) in [(Cut::Fin, "request-fin"), (Cut::Reset, "request-rst")] {
        let to = namespace(name);
        let (counts, _recorder) = counting();
        let proxy = Proxy::to(&to);
        let client = client(&proxy.connect_string()).await;
        let fault = proxy.drop_request_and_cut(multi_about("lost-request"), cut);
        let job = client.submit(Job::new("sum", &1).id("lost-request")).await.unwrap();
        fault.fired().await;
        assert!(!job.is_duplicate());
        assert_eq!((resolved(&counts, "applied"), resolved(&counts, "not_applied")), (0, 1), "{name}");
        assert_one_queued_job(&to, "lost-request").await;
    }
}

/// The purge reads ZooKeeper's time from its own write to `/jobs`.
#[tokio::test]
async fn a_purge_whose_first_write_is_lost_writes_again() {
    for (reply, name) in [(true, "purge-reply"), (false, "purge-request")] {
        let to = namespace(name);
        let proxy = Proxy::to(&to);
        let client = client(&proxy.connect_string()).await;
        let job = client.submit(Job::new("sum", &1).id("a")).await.unwrap();
        client.cancel(job.id()).await.unwrap();
        let is_clock = |request: &Request<'_>| {
            request.op == op::MULTI && request.mentions("/jobs") && !request.mentions("/jobs/")
        };
        let fault = if reply {
            proxy.swallow_reply_and_cut(is_clock, Cut::Reset)
        } else {
            proxy.drop_request_and_cut(is_clock, Cut::Reset)
        };
        let purged = client.purge(&Purge::of(Ended::Cancelled).remove(true), |_| {}).await.unwrap();
        fault.fired().await;
        assert_eq!((purged.removed, purged.too_recent), (0, 1), "{name}");
    }
}

/// Returns the record in a multi: jute writes the length of the path, the path, the length of the data, and the data.
fn record_in(multi: &[u8], path: &str) -> JobRecord {
    let at = multi.windows(path.len()).position(|window| window == path.as_bytes()).unwrap() + path.len();
    let (length, data) = multi[at..].split_first_chunk::<4>().unwrap();
    decode(&data[..usize::try_from(i32::from_be_bytes(*length)).unwrap()]).unwrap()
}

/// The first copy is delayed between the cut connection and the leader. It is applied after the client has read that
/// there is no record, and before it sends the second copy.
#[tokio::test]
async fn a_first_copy_applied_after_the_read_back_is_the_same_job() {
    let to = namespace("late-copy");
    let (counts, _recorder) = counting();
    let proxy = Proxy::to(&to);
    let (client, fake) = (client(&proxy.connect_string()).await, FakeCluster::new(&to).await);
    let first_copy = Arc::new(Mutex::new(Vec::new()));
    let copy = Arc::clone(&first_copy);
    let lost = move |request: &Request<'_>| {
        let matches = request.op == op::MULTI && request.mentions("lingering");
        if matches {
            *copy.lock().unwrap() = request.body.to_vec();
        }
        matches
    };
    let fault = proxy.drop_request_and_cut(lost, Cut::Reset);
    let read_back = |request: &Request<'_>| request.op == op::MULTI_READ && request.mentions("lingering");
    let read_back = proxy.hold_reply(read_back);
    let late = async {
        fault.fired().await;
        read_back.fired().await;
        let job = id("lingering");
        let record = record_in(&first_copy.lock().unwrap(), &path::record(&job));
        fake.apply(txn::submit(&job, &record, 0)).await;
        read_back.release();
    };
    let submission = client.submit(Job::new("sum", &1).id("lingering"));
    let (job, ()) = tokio::join!(submission, late);
    assert!(!job.unwrap().is_duplicate(), "the second copy was rejected, and the record is our own");
    assert_eq!((resolved(&counts, "applied"), resolved(&counts, "not_applied")), (0, 1));
    assert_one_queued_job(&to, "lingering").await;
}

#[tokio::test]
async fn a_batch_with_a_lost_reply_is_accepted_as_a_whole() {
    let to = namespace("batch-reply");
    let proxy = Proxy::to(&to);
    let client = client(&proxy.connect_string()).await;
    let fault = proxy.swallow_reply_and_cut(multi_about("job-250"), Cut::Reset);
    let jobs = (0..500).map(|n| Job::new("sum", &n).id(format!("job-{n}")));
    let answers = client.submit_many(jobs, |_| {}).await;
    fault.fired().await;
    for answer in answers {
        assert!(!answer.unwrap().is_duplicate());
    }
}

#[tokio::test]
async fn a_client_survives_an_expired_session() {
    let to = namespace("expiry");
    let proxy = Proxy::to(&to);
    let client = client(&proxy.connect_string()).await;
    client.submit(Job::new("sum", &1).id("before")).await.unwrap();
    proxy.expire_session().await;
    client.submit(Job::new("sum", &1).id("after")).await.unwrap();
    assert_eq!(client.get(&id("before")).await.unwrap().unwrap().state, State::Queued);
    assert!(proxy.handshakes() >= 2);
}

#[tokio::test]
async fn a_submission_not_sent_in_time_is_reported_and_never_sent() {
    let to = namespace("not-sent");
    // The namespace exists already, so that little has to be done within the short deadline.
    client(&to).await.close().await;
    let proxy = Proxy::to(&to);
    let client = Client::builder(proxy.connect_string()).deadline(Duration::from_secs(1));
    let client = client.connect().await.unwrap();
    proxy.refuse();
    proxy.cut(Cut::Reset);
    // Nothing is in flight, so the first failed read shows that the client has noticed.
    while client.workers().await.is_ok() {}
    let error = client.submit(Job::new("sum", &1).id("never")).await.unwrap_err();
    let SubmitError::NotSent { reason: Unavailable::NotInTime { reason, .. }, .. } = &error else {
        panic!("{error:?}")
    };
    assert!(reason.contains("127.0.0.1:"), "{reason}");
    proxy.heal();
    let later = client.submit(Job::new("sum", &1).id("later"));
    bellwether_testkit::eventually("it is connected", SOON, async || client.workers().await.is_ok()).await;
    later.await.unwrap();
    assert_eq!(client.get(&id("never")).await.unwrap(), None);
}

#[tokio::test]
async fn a_submission_that_might_run_twice_when_repeated_is_to_be_read_back() {
    let to = namespace("unknown-twice");
    client(&to).await.close().await;
    let plain = || Job::new("sum", &1);
    for job in [plain(), plain().id("again").if_exists(IfExists::Again)] {
        let proxy = Proxy::to(&to);
        let client = Client::builder(proxy.connect_string()).deadline(Duration::from_secs(1));
        let client = client.connect().await.unwrap();
        // Connected, so that the next request is the write.
        client.submit(plain()).await.unwrap();
        proxy.stall(Direction::ToClient);
        let error = client.submit(job).await.unwrap_err();
        assert!(matches!(error, SubmitError::Unknown { .. }), "{error:?}");
        assert_eq!(error.remedy(), Remedy::ReadBack);
    }
}

#[tokio::test]
async fn a_submission_without_an_answer_in_time_is_unknown_and_can_be_repeated() {
    let to = namespace("unknown");
    // Creates the namespace, which may take longer than the deadline below on a busy machine.
    client(&to).await.close().await;
    let proxy = Proxy::to(&to);
    let client = Client::builder(proxy.connect_string()).deadline(Duration::from_secs(1));
    let client = client.connect().await.unwrap();
    // Connected, so that the next request is the write.
    client.submit(Job::new("sum", &1)).await.unwrap();
    proxy.stall(Direction::ToClient);
    let job = Job::new("sum", &1).id("doubtful");
    let error = client.submit(job.clone()).await.unwrap_err();
    assert!(matches!(error, SubmitError::Unknown { .. }), "{error:?}");
    assert!(error.to_string().contains("submit it again with the same id"), "{error}");
    assert_eq!(error.remedy(), Remedy::Retry);
    proxy.heal();
    let again = bellwether_testkit::eventually_some("the job is accepted", SOON, async || {
        client.submit(job.clone()).await.ok()
    });
    assert!(again.await.is_duplicate(), "the first submission was applied");
}

/// Loses the reply to the next multi, or the multi itself.
fn lose(proxy: &Proxy, reply: bool) -> Fault {
    if reply {
        proxy.swallow_reply_and_cut(op::MULTI, Cut::Reset)
    } else {
        proxy.drop_request_and_cut(op::MULTI, Cut::Reset)
    }
}

#[tokio::test]
async fn a_cancel_with_a_lost_reply_or_request_takes_effect() {
    for reply in [true, false] {
        let to = namespace("cancel-lost");
        let proxy = Proxy::to(&to);
        let client = client(&proxy.connect_string()).await;
        let job = client.submit(Job::new("sum", &1).id("a")).await.unwrap();
        let fault = lose(&proxy, reply);
        assert_eq!(client.cancel(job.id()).await.unwrap(), Cancelled::Cancelled);
        fault.fired().await;
        assert!(FakeCluster::new(&to).await.record(job.id()).await.0.is_terminal());
    }
}

#[tokio::test]
async fn a_retry_with_a_lost_reply_or_request_opens_one_generation() {
    for reply in [true, false] {
        let to = namespace("retry-lost");
        let proxy = Proxy::to(&to);
        let client = client(&proxy.connect_string()).await;
        let job = client.submit(Job::new("sum", &1).id("a")).await.unwrap();
        client.cancel(job.id()).await.unwrap();
        let fault = lose(&proxy, reply);
        assert_eq!(client.retry(job.id()).await.unwrap(), Retried::Reopened(2));
        fault.fired().await;
        assert_eq!(FakeCluster::new(&to).await.record(job.id()).await.0.generation, 2);
    }
}

#[tokio::test]
async fn a_release_from_quarantine_with_a_lost_reply_or_request_happens_once() {
    for reply in [true, false] {
        let to = namespace("release-lost");
        let proxy = Proxy::to(&to);
        let (client, fake) = (client(&proxy.connect_string()).await, FakeCluster::new(&to).await);
        let worker = fake.worker(&["sum"], 1, &[]).await;
        let job = client.submit(Job::new("sum", &1).id("a")).await.unwrap();
        fake.assign(job.id(), worker).await;
        fake.set_aside(job.id(), worker).await;
        let fault = lose(&proxy, reply);
        assert_eq!(client.retry(job.id()).await.unwrap(), Retried::Released);
        fault.fired().await;
        assert_eq!(fake.record(job.id()).await.1, 1);
        fake.read(fake.entry(job.id()).await).await;
    }
}

#[tokio::test]
async fn a_wait_survives_the_loss_of_connection_and_session() {
    let to = namespace("wait-reconnect");
    let proxy = Proxy::to(&to);
    let client = client(&proxy.connect_string()).await;
    let fake = FakeCluster::new(&to).await;
    let worker = fake.worker(&["sum"], 9, &[]).await;
    for (name, expire) in [("reconnect", false), ("expire", true)] {
        let job = client.submit(Job::new("sum", &1).id(name)).await.unwrap();
        let waiting = tokio::spawn({
            let job = job.clone();
            async move { job.wait(SOON).await }
        });
        if expire {
            proxy.expire_session().await;
        } else {
            proxy.cut(Cut::Reset);
        }
        fake.succeed(job.id(), worker, "7").await;
        assert_eq!(waiting.await.unwrap().unwrap().state, State::Succeeded, "{name}");
    }
}

/// The request that restores watches is sent in one piece. With more than 128 KiB of paths the server would close
/// every connection that sends it, until the session expires.
#[tokio::test]
async fn a_thousand_waits_set_few_watches_and_survive_a_reconnection() {
    let to = namespace("thousand-waits");
    let proxy = Proxy::to(&to);
    let client =
        Client::builder(proxy.connect_string()).session_timeout(Duration::from_secs(40)).deadline(SOON);
    let client = client.connect().await.unwrap();
    let fake = FakeCluster::new(&to).await;
    let worker = fake.worker(&["sum"], 4_096, &[]).await;
    let jobs = (0..1_000).map(|n| Job::new("sum", &n).id(format!("{n:0>128}")));
    let submitted = client.submit_many(jobs, |_| {}).await;
    let ids = submitted.into_iter().map(|job| job.unwrap().id().clone()).collect::<Vec<_>>();
    let waits = ids.iter().map(|id| {
        let (client, id) = (client.clone(), id.clone());
        tokio::spawn(async move { client.wait(&id, 2 * SOON).await })
    });
    let waits = waits.collect::<Vec<_>>();
    let chroot = &to[to.find('/').unwrap()..];
    let watched = || {
        let paths = four_letter_word(shared().address(), "wchp").unwrap();
        paths.lines().filter(|line| line.starts_with(&format!("{chroot}/jobs/"))).count()
    };
    eventually("the maximum number of jobs is watched", SOON, async || watched() >= MAX_WATCHED).await;
    assert_eq!(watched(), MAX_WATCHED);

    let (session, handshakes) = (proxy.session().unwrap().session_id, proxy.handshakes());
    proxy.cut(Cut::Reset);
    eventually("the client is connected again", SOON, async || proxy.handshakes() > handshakes).await;
    stream::iter(&ids).for_each_concurrent(64, |id| fake.succeed(id, worker, "7")).await;
    for wait in waits {
        assert_eq!(wait.await.unwrap().unwrap().state, State::Succeeded);
    }
    assert_eq!(proxy.session().unwrap().session_id, session, "the session is the same");
    eventually("no job is watched", SOON, async || watched() == 0).await;
}

#[tokio::test]
async fn the_session_ends_when_the_last_handle_of_its_client_is_dropped() {
    let proxy = Proxy::to(&namespace("dropped"));
    let client = client(&proxy.connect_string()).await;
    let session = format!("sid=0x{:x},", proxy.session().unwrap().session_id);
    let is_open = || four_letter_word(shared().address(), "cons").unwrap().contains(&session);
    let other = client.clone();
    drop(client);
    other.workers().await.unwrap();
    assert!(is_open());
    drop(other);
    eventually("the session has ended", SOON, async || !is_open()).await;
}

#[tokio::test]
async fn an_unreachable_server_is_named_within_the_deadline() {
    let began = std::time::Instant::now();
    let builder = Client::builder("127.0.0.1:1/nowhere").deadline(Duration::from_millis(500));
    let error = builder.connect().await.unwrap_err().to_string();
    assert!(began.elapsed() < Duration::from_secs(5));
    assert!(error.contains("127.0.0.1:1") && error.contains("refused"), "{error}");
}

#[tokio::test]
async fn a_session_timeout_out_of_bounds_is_refused_before_any_connection() {
    let given = Duration::ZERO;
    let refused = Client::builder("127.0.0.1:1/nowhere").session_timeout(given).connect().await.unwrap_err();
    let ConnectError::Connection(InvalidConnection::SessionTimeout(error)) = refused else {
        panic!("{refused}")
    };
    assert_eq!(error.given, given);
    let election = bellwether::election::Election::builder("127.0.0.1:1/nowhere").session_timeout(given);
    let refused = election.start().await.unwrap_err();
    assert!(refused.to_string().contains("must be 100ms to 2147483647 ms, not 0ns"), "{refused}");
}

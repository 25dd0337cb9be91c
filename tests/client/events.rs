//! Events of jobs as clients receive them.

use std::time::Duration;

use bellwether::client::{Events, Notification};
use bellwether::{Client, Job, State};
use bellwether_core::job::Ending;
use bellwether_testkit::{Cut, Proxy, namespace};

use crate::fake_cluster::{FakeCluster, SOON, client, id};

async fn next(events: &mut Events) -> Option<Notification> {
    tokio::time::timeout(SOON, events.next()).await.expect("a notification in time")
}

/// The next event, as job, state and attempt.
async fn seen(events: &mut Events) -> (String, State, u32) {
    match next(events).await {
        Some(Notification::Event(event)) => (event.job.to_string(), event.state, event.attempt),
        other => panic!("{other:?}"),
    }
}

fn of(job: &str, state: State, attempt: u32) -> (String, State, u32) {
    (job.to_owned(), state, attempt)
}

#[tokio::test]
async fn all_followers_of_a_client_see_each_state_of_a_job() {
    let to = namespace("events");
    let (client, fake) = (client(&to).await, FakeCluster::new(&to).await);
    let worker = fake.worker(&["sum"], 9, &[]).await;
    let (mut first, mut second) = (client.events(), client.events());
    assert!(first.watching().await && second.watching().await);
    assert_eq!(first.try_next(), None, "nothing has happened yet");
    client.submit(Job::new("sum", &1).id("a")).await.unwrap();
    for events in [&mut first, &mut second] {
        assert_eq!(seen(events).await, of("a", State::Queued, 0));
    }
    fake.assign(&id("a"), worker).await;
    let Some(Notification::Event(running)) = next(&mut first).await else { panic!("no event") };
    assert_eq!((running.state, running.attempt, running.worker), (State::Running, 1, Some(worker)));
    assert_eq!((running.kind.as_ref().unwrap().as_str(), running.generation), ("sum", 1));
    fake.close(&id("a"), worker, Ending::Failed("no luck".into())).await;
    let Some(Notification::Event(delayed)) = next(&mut first).await else { panic!("no event") };
    assert_eq!((delayed.state, delayed.attempt), (State::Delayed, 1));
    assert_eq!(delayed.error.as_deref(), Some("no luck"));
    client.cancel(&id("a")).await.unwrap();
    assert_eq!(seen(&mut first).await, of("a", State::Cancelled, 1));
    drop(first);
    for state in [State::Running, State::Delayed, State::Cancelled] {
        assert_eq!(seen(&mut second).await.1, state, "a follower at its own pace");
    }
    assert_eq!(second.try_next(), None);
}

#[tokio::test]
async fn a_follower_learns_of_a_gap_after_a_lost_connection_and_of_later_events() {
    let to = namespace("events-gap");
    let proxy = Proxy::to(&to);
    let followed = Client::builder(proxy.connect_string()).deadline(SOON).connect().await.unwrap();
    let other = client(&to).await;
    let mut events = followed.events();
    assert!(events.watching().await);
    proxy.refuse();
    proxy.cut(Cut::Reset);
    other.submit(Job::new("sum", &1).id("unseen")).await.unwrap();
    proxy.accept();
    assert_eq!(next(&mut events).await, Some(Notification::Gap));
    assert!(events.watching().await);
    other.submit(Job::new("sum", &2).id("seen")).await.unwrap();
    assert_eq!(seen(&mut events).await, of("seen", State::Queued, 0));
}

#[tokio::test]
async fn followers_of_a_closed_client_end_and_a_client_without_followers_watches_again_later() {
    let to = namespace("events-end");
    let (first, second) = (client(&to).await, client(&to).await);
    drop(first.events());
    let mut events = first.events();
    assert!(events.watching().await, "the hub of the dropped follower is not used");
    second.submit(Job::new("sum", &1).id("a")).await.unwrap();
    assert_eq!(seen(&mut events).await, of("a", State::Queued, 0));
    first.close().await;
    assert_eq!(next(&mut events).await, None);
    assert_eq!(tokio::time::timeout(Duration::from_secs(5), events.next()).await, Ok(None), "it stays ended");
    assert!(!events.watching().await);
}

//! A large group: the memory of the leader and of the join does not grow with it.

use bellwether::{Group, Handlers, Job};
use serde_json::json;

use crate::stage::{SOON, cluster, result, sum};

/// More than two chunks, and enough for many reads; the benchmark has 100,000.
const MEMBERS: u32 = 10_000;

#[tokio::test]
async fn a_group_of_ten_thousand_is_joined_and_read_a_page_at_a_time() {
    let handlers = Handlers::new()
        .job("one", |_, n: u64| async move { Ok(n % 2) })
        .join("one", |_, members| async move { sum(members).await });
    let cluster = cluster(handlers, 2).await;
    let client = cluster.client();
    let group = client.group(Group::new("one", "many").unwrap().total(MEMBERS)).await.unwrap();
    let jobs = (0..MEMBERS).map(|n| Job::new("one", &n).unwrap());
    assert_eq!(group.submit_all(jobs).await.unwrap(), MEMBERS);
    let view = group.wait(5 * SOON).await.unwrap();
    assert_eq!((view.succeeded, view.open), (MEMBERS, 0));
    assert_eq!(result(client, "one.join:@many").await, json!([MEMBERS, MEMBERS / 2]));
    cluster.stop().await.unwrap();
}

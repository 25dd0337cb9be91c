//! A large group: the memory of the leader and of the join does not grow with it.

use bellwether::{Handlers, JobKind, JoinKind};

use crate::stage::{SOON, cluster, sum};

/// More than two chunks, and enough for many reads; the benchmark has 100,000.
const MEMBERS: u32 = 10_000;

/// The parity of a number.
struct One;

impl JobKind for One {
    const NAME: &'static str = "one";
    type Payload = u32;
    type Result = u64;
}

impl JoinKind for One {
    type Joined = (u64, u64);
}

#[tokio::test]
async fn a_group_of_ten_thousand_is_joined_and_read_a_page_at_a_time() {
    let handlers = Handlers::new()
        .kind::<One>(|_, n| async move { Ok(u64::from(n % 2)) })
        .join::<One>(|_, members| async move { sum(members).await });
    let cluster = cluster(handlers, 2).await;
    let client = cluster.client();
    let group = client.group(One::group("many").total(MEMBERS)).await.unwrap();
    let jobs = (0..MEMBERS).map(|n| One::job(&n));
    assert_eq!(group.submit_all(jobs).await.unwrap(), MEMBERS);
    let view = group.wait(5 * SOON).await.unwrap();
    assert_eq!((view.succeeded, view.open), (MEMBERS, 0));
    let joined = group.join_result(SOON).await.unwrap();
    assert_eq!(joined, (u64::from(MEMBERS), u64::from(MEMBERS / 2)));
    cluster.stop().await.unwrap();
}

//! The schedules that a node is started with.
//!
//! A separate client adds them once ZooKeeper is reachable, and is then closed. Adding the same schedule again
//! changes nothing, so nodes that start with the same schedules create each of them once, and a restarted node
//! creates none. A schedule that cannot be added is logged, and the node runs without it: for example if the namespace has the
//! maximum number of schedules.

use std::time::Duration;

use bellwether_core::chain::chain;
use tokio::time::sleep;

use crate::client::{Client, ClientBuilder, Schedule};

/// The first pause before a retry: ZooKeeper is mostly back soon. The pause doubles up to [`MAX_RETRY`].
const MIN_RETRY: Duration = Duration::from_secs(1);

/// The longest pause before a retry. An outage of ZooKeeper may last for hours.
const MAX_RETRY: Duration = Duration::from_secs(30);

pub(super) async fn add(builder: ClientBuilder, mut schedules: Vec<Schedule>) {
    let mut pause = MIN_RETRY;
    while !schedules.is_empty() {
        match builder.clone().connect().await {
            Ok(client) => {
                schedules = add_some(&client, schedules).await;
                client.close().await;
            }
            Err(error) => {
                let error = chain(&error);
                tracing::warn!(error, "the node could not add its schedules: it retries");
            }
        }
        if !schedules.is_empty() {
            sleep(pause).await;
            pause = (2 * pause).min(MAX_RETRY);
        }
    }
}

/// Returns the schedules that are to be tried again.
async fn add_some(client: &Client, schedules: Vec<Schedule>) -> Vec<Schedule> {
    let mut left = Vec::new();
    for schedule in schedules {
        let id = schedule.id().to_owned();
        match client.schedules().add(&schedule).await {
            Ok(added) => tracing::info!(schedule = id, ?added, "the node's schedule is in place"),
            Err(error) if error.is_retryable() => {
                let error = chain(&error);
                tracing::warn!(schedule = id, error, "the node could not add its schedule: it retries");
                left.push(schedule);
            }
            Err(error) => {
                let error = chain(&error);
                tracing::error!(schedule = id, error, "the node could not add its schedule");
            }
        }
    }
    left
}

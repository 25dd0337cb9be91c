//! The schedules that a node is started with.
//!
//! A separate client adds them once ZooKeeper is reachable, and is then closed. Adding the same schedule again
//! changes nothing, so nodes that start with the same schedules create each of them once, and a restarted node
//! creates none. A schedule that cannot be added is logged; the node runs without it.

use std::time::Duration;

use bellwether_zk::Access;
use tokio::time::sleep;

use crate::client::{Client, Schedule, ScheduleError};

/// The pause before ZooKeeper is tried again.
const RETRY: Duration = Duration::from_secs(1);

pub(super) async fn add(
    zookeeper: String,
    access: Access,
    session_timeout: Duration,
    mut schedules: Vec<Schedule>,
) {
    let builder = Client::builder().access(access).session_timeout(session_timeout);
    while !schedules.is_empty() {
        match builder.clone().connect(&zookeeper).await {
            Ok(client) => {
                schedules = add_some(&client, schedules).await;
                client.close().await;
            }
            Err(error) => tracing::warn!(%error, "the node's schedules are not added yet: retrying"),
        }
        if !schedules.is_empty() {
            sleep(RETRY).await;
        }
    }
}

/// Returns the schedules that are to be tried again.
async fn add_some(client: &Client, schedules: Vec<Schedule>) -> Vec<Schedule> {
    let mut left = Vec::new();
    for schedule in schedules {
        let name = schedule.name().to_owned();
        match client.schedules().add(&schedule).await {
            Ok(added) => tracing::info!(schedule = name, ?added, "the node's schedule is in place"),
            Err(
                error @ (ScheduleError::Client(_)
                | ScheduleError::Contended { .. }
                | ScheduleError::Unknown { .. }
                | ScheduleError::NotFound(_)),
            ) => {
                tracing::warn!(schedule = name, %error, "the node's schedule is not added yet: retrying");
                left.push(schedule);
            }
            Err(
                error @ (ScheduleError::Name(_)
                | ScheduleError::Invalid(_)
                | ScheduleError::Job(_)
                | ScheduleError::JobOwns { .. }
                | ScheduleError::Past { .. }
                | ScheduleError::Conflict { .. }
                | ScheduleError::Overloaded { .. }
                | ScheduleError::Unreadable { .. }),
            ) => tracing::error!(schedule = name, %error, "the node's schedule was not added"),
        }
    }
    left
}

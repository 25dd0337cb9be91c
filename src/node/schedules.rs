//! The schedules that a node is started with.
//!
//! A client of the node's own adds them once ZooKeeper serves, and ends. Adding the same schedule again changes nothing,
//! so nodes that are started with the same ones make each of them once, whoever comes first, and a node that starts again
//! makes none anew. What cannot be added is told in the log and stops nothing: the node serves all the same.

use std::time::Duration;

use bellwether_zk::Access;
use tokio::time::sleep;

use crate::client::{Client, Schedule, ScheduleError};

/// Until ZooKeeper is asked again.
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
            Err(error) => tracing::warn!(%error, "the node's schedules are not added yet: trying again"),
        }
        if !schedules.is_empty() {
            sleep(RETRY).await;
        }
    }
}

/// What is left of them, to be tried again.
async fn add_some(client: &Client, schedules: Vec<Schedule>) -> Vec<Schedule> {
    let mut left = Vec::new();
    for schedule in schedules {
        let name = schedule.name().to_owned();
        match client.schedules().add(&schedule).await {
            Ok(added) => tracing::info!(schedule = name, ?added, "a schedule of this node"),
            Err(
                error @ (ScheduleError::Client(_)
                | ScheduleError::Contended { .. }
                | ScheduleError::Unknown { .. }
                | ScheduleError::NotFound(_)),
            ) => {
                tracing::warn!(schedule = name, %error, "a schedule of this node is not added yet: trying again");
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
            ) => tracing::error!(schedule = name, %error, "a schedule of this node is not added"),
        }
    }
    left
}

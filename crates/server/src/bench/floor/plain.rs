//! One znode per job and step: record, queue entry, assignment.

use uuid::Uuid;
use zookeeper_client::Client;

use super::{Failed, INBOX, PERSISTENT, below, buckets, mkdir};

/// Bytes of a new record, a queue entry, an assignment and a record with its result, of a job whose payload is a number.
const RECORD: [u8; 89] = [0; 89];
const ENTRY: [u8; 30] = [0; 30];
const ASSIGNMENT: [u8; 25] = [0; 25];
const DONE: [u8; 147] = [0; 147];

pub(super) async fn prepare(client: &Client) -> Result<(), String> {
    for path in ["/epoch", INBOX] {
        mkdir(client, path).await?;
    }
    buckets(client, "/jobs").await?;
    buckets(client, "/queue").await
}

/// Submits, assigns, reads and completes the jobs, and reads their results, each step in one request.
pub(super) async fn life(client: &Client, jobs: Vec<Uuid>) -> Result<(), Failed> {
    let mut submit = client.new_multi_writer();
    for job in &jobs {
        submit.add_create(&below("/jobs", job), &RECORD, &PERSISTENT)?;
        submit.add_create(&below("/queue", job), &ENTRY, &PERSISTENT)?;
    }
    submit.commit().await?;
    let mut assign = client.new_multi_writer();
    assign.add_check_version("/epoch", 0)?;
    for job in &jobs {
        assign.add_delete(&below("/queue", job), None)?;
        assign.add_create(&format!("{INBOX}/{job}"), &ASSIGNMENT, &PERSISTENT)?;
    }
    assign.commit().await?;
    read(client, &jobs).await?;
    let mut complete = client.new_multi_writer();
    for job in &jobs {
        complete.add_set_data(&below("/jobs", job), &DONE, Some(0))?;
        complete.add_delete(&format!("{INBOX}/{job}"), None)?;
    }
    complete.commit().await?;
    read(client, &jobs).await
}

async fn read(client: &Client, jobs: &[Uuid]) -> Result<(), Failed> {
    let mut records = client.new_multi_reader();
    for job in jobs {
        records.add_get_data(&below("/jobs", job))?;
    }
    records.commit().await?;
    Ok(())
}

//! One znode per job and step: record, entry of the waiting job, assignment.

use uuid::Uuid;
use zookeeper_client::Client;

use super::{Failed, INBOX, PERSISTENT, below, buckets, mkdir};

/// Bytes of a new record, an assignment and a record with its result, of a job whose payload is a number. Its entry has none.
const RECORD: [u8; 91] = [0; 91];
const ASSIGNMENT: [u8; 25] = [0; 25];
const DONE: [u8; 149] = [0; 149];

/// The slot of the waiting jobs.
const SLOT: &str = "/ready/3/bench/29300000";

pub(super) async fn prepare(client: &Client) -> Result<(), String> {
    for path in ["/epoch", INBOX, SLOT] {
        mkdir(client, path).await?;
    }
    buckets(client, "/jobs").await
}

/// Submits, assigns, reads and completes the jobs, and reads their results, each step in one request.
pub(super) async fn life(client: &Client, jobs: Vec<Uuid>) -> Result<(), Failed> {
    let mut submit = client.new_multi_writer();
    for job in &jobs {
        submit.add_create(&below("/jobs", job), &RECORD, &PERSISTENT)?;
        submit.add_create(&entry(job), &[], &PERSISTENT)?;
    }
    submit.commit().await?;
    let mut assign = client.new_multi_writer();
    assign.add_check_version("/epoch", 0)?;
    for job in &jobs {
        assign.add_delete(&entry(job), None)?;
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

fn entry(job: &Uuid) -> String {
    format!("{SLOT}/012345{job}+1.1")
}

async fn read(client: &Client, jobs: &[Uuid]) -> Result<(), Failed> {
    let mut records = client.new_multi_reader();
    for job in jobs {
        records.add_get_data(&below("/jobs", job))?;
    }
    records.commit().await?;
    Ok(())
}

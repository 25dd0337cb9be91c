//! One znode per batch and step: segment, entry, slice, chunk of results.

use uuid::Uuid;
use zookeeper_client::Client;

use super::{Failed, INBOX, PERSISTENT, below, buckets, mkdir};

/// Bytes of a segment: its head, and of each job its payload, a number, with lengths.
const HEAD: usize = 64;
const MEMBER: usize = 14;

/// Bytes of a slice: masks of the members that are assigned and over, the epoch, a time and a lease.
const SLICE: [u8; 90] = [0; 90];

/// Bytes of a result in a chunk: its member, when it ended, the number.
const RESULT: usize = 16;

pub(super) async fn prepare(client: &Client) -> Result<(), String> {
    // Shared with the other floor: the epoch and the inbox.
    for path in ["/epoch", INBOX, "/ready"] {
        mkdir(client, path).await?;
    }
    buckets(client, "/segments").await
}

/// Submits, assigns, reads and completes the jobs, and reads their results, each step in one request. The worker also writes its
/// slice once before the results, because it may begin only what it has announced.
pub(super) async fn life(client: &Client, jobs: Vec<Uuid>) -> Result<(), Failed> {
    let Some(id) = jobs.first() else { return Ok(()) };
    let (segment, entry, slice) =
        (below("/segments", id), format!("/ready/{id}"), format!("{INBOX}/{id},1,1"));
    let chunk = format!("{segment}/s");
    let (body, results) = (vec![0; HEAD + MEMBER * jobs.len()], vec![0; RESULT * jobs.len()]);

    let mut submit = client.new_multi_writer();
    submit.add_create(&segment, &body, &PERSISTENT)?;
    submit.add_create(&entry, &[], &PERSISTENT)?;
    submit.commit().await?;
    let mut assign = client.new_multi_writer();
    assign.add_check_version("/epoch", 0)?;
    assign.add_delete(&entry, None)?;
    assign.add_create(&slice, &SLICE, &PERSISTENT)?;
    assign.commit().await?;
    let mut work = client.new_multi_reader();
    work.add_get_data(&slice)?;
    work.add_get_data(&segment)?;
    work.commit().await?;
    let mut begin = client.new_multi_writer();
    begin.add_set_data(&slice, &SLICE, Some(0))?;
    begin.commit().await?;
    let mut complete = client.new_multi_writer();
    complete.add_delete(&slice, Some(1))?;
    complete.add_create(&chunk, &results, &PERSISTENT)?;
    complete.commit().await?;
    let mut read = client.new_multi_reader();
    read.add_get_children(&segment)?;
    read.add_get_data(&chunk)?;
    read.commit().await?;
    Ok(())
}

//! Assembles a report once all of its pages have been rendered, on any number of nodes.
//!
//! The pages are members of a group, and the report is its join. Submitting everything again after a crash changes
//! nothing, because a page is identified by its number. In a group that fails fast, the first page that cannot be
//! rendered stops the others.
//!
//! Uses the ZooKeeper at `BELLWETHER_ZOOKEEPER` (`HOST:PORT/CHROOT`, an unused namespace), or starts one:
//!
//! ```sh
//! cargo run --example groups
//! ```
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::fmt::Write;
use std::time::Duration;

use bellwether::{Client, HandlerError, Handlers, JobKind, JoinKind, Node};

const SOON: Duration = Duration::from_secs(60);
const PAGES: u32 = 20;

/// The expected output.
pub(crate) const EXPECTED: &str = "\
november: 20 pages of 20, 210 lines
submitted again: 20 existed already
december: stopped, member 3 ended without success; 1 dead, 0 open
";

/// A page has as many lines as its payload specifies. Without a number it is broken.
struct Page;

impl JobKind for Page {
    const NAME: &'static str = "page";
    type Payload = Option<u32>;
    type Result = u32;
}

impl JoinKind for Page {
    /// The numbers of pages and lines of the report.
    type Joined = (u32, u32);
}

/// Runs the example and returns its output.
///
/// # Errors
/// Fails if ZooKeeper cannot be reached, or a group is not done in time.
pub(crate) async fn run(zookeeper: &str) -> Result<String, Box<dyn Error>> {
    let mut nodes = Vec::new();
    for name in ["one", "two"] {
        nodes.push(Node::builder(zookeeper).node_id(name).handlers(handlers()).start().await?);
    }
    let client = Client::connect(zookeeper).await?;
    let mut told = String::new();

    submit(&client).await?;
    let group = client.group(Page::group("november")).await?;
    let (pages, lines) = group.join_result(SOON).await?;
    writeln!(told, "november: {pages} pages of {PAGES}, {lines} lines")?;
    writeln!(told, "submitted again: {} existed already", submit(&client).await?)?;

    let group = client.group(Page::group("december").total(PAGES).fail_fast(true).join(false)).await?;
    for number in 0..PAGES {
        // Page 3 is broken. The submission of a later page may find that the group was stopped.
        let lines = if number == 3 { None } else { Some(number) };
        if group.submit(number, Page::job(&lines).max_attempts(1)).await.is_err() {
            break;
        }
    }
    let done = group.wait(SOON).await?;
    let stopped = done.stopped.unwrap_or_default();
    writeln!(told, "december: stopped, {stopped}; {} dead, {} open", done.dead, done.open)?;

    client.close().await;
    for node in nodes {
        node.stop().await;
    }
    Ok(told)
}

/// Submits all pages of November and returns how many existed already.
async fn submit(client: &Client) -> Result<u32, Box<dyn Error>> {
    let group = client.group(Page::group("november").total(PAGES)).await?;
    let mut duplicates = 0;
    for number in 0..PAGES {
        let page = group.submit(number, Page::job(&Some(number + 1))).await?;
        duplicates += u32::from(page.is_duplicate());
    }
    Ok(duplicates)
}

fn handlers() -> Handlers {
    Handlers::new()
        .kind::<Page>(|_, lines| async move { lines.ok_or_else(|| HandlerError::new("the page is broken")) })
        .join::<Page>(|_, mut pages| async move {
            let (mut count, mut lines) = (0_u32, 0_u32);
            // Reads the records page by page, however many members there are.
            while let Some(page) = pages.next().await? {
                count += 1;
                // The report fails if a page has no result.
                lines += page.into_result()?;
            }
            Ok((count, lines))
        })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let zookeeper = std::env::var("BELLWETHER_ZOOKEEPER");
    let story = run(&zookeeper.unwrap_or_else(|_| bellwether_testkit::namespace("groups"))).await?;
    print!("{story}");
    assert_eq!(story, EXPECTED);
    Ok(())
}

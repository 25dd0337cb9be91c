//! What pages show of a job, a worker and a list, in detail.

use bellwether::{Client, Handlers, Job, Node};
use serde_json::json;

use crate::ask::Ask;
use crate::browser::{Page, browse};
use crate::stage::Stage;

/// Returns the text of the data with this title.
async fn data(page: &Page, title: &str) -> String {
    let text = page
        .run(&format!("return document.querySelector('pre[aria-label={title}]')?.textContent ?? ''"))
        .await;
    text.as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn payload_and_result_are_shown_exactly_as_json_text_and_hex() {
    let stage = Stage::new("console-data").await;
    let node = stage.node().await;
    let exact = r#"{"n":9007199254740993,"big":12345678901234567890,"f":1.0,"of":["\u00e4\"]",{}, []]}"#;
    stage
        .post("/v1/jobs", &format!(r#"{{"id": "exact", "kind": "echo", "payload": {exact}}}"#))
        .await
        .is(201);
    stage.post("/v1/jobs", r#"{"id": "text", "kind": "nobody", "payload": "abc"}"#).await.is(201);
    stage.get("/v1/jobs/exact/wait").await.is(200);
    let client = Client::connect(&stage.to).await.unwrap();
    let bytes = Job::raw("nobody", "image/png", *b"\x89PNG\xff\x00<img>\r\n and more than sixteen").unwrap();
    client.submit(bytes.id("bytes")).await.unwrap();
    browse(stage.address(), async |page| {
        page.open("#/jobs/exact").await;
        page.shows("Ended as succeeded").await;
        let indented = "{\n  \"n\": 9007199254740993,\n  \"big\": 12345678901234567890,\n  \"f\": 1.0,\n  \"of\": [\n    \"\\u00e4\\\"]\",\n    {},\n    []\n  ]\n}";
        for title in ["Payload", "Result"] {
            assert_eq!(data(&page, title).await, indented, "{title}");
        }
        page.shows(&format!("application/json, {} bytes", exact.len())).await;
        page.click("Payload as text").await;
        assert_eq!(data(&page, "Payload").await, exact);
        page.click("Payload as hex").await;
        let hex = data(&page, "Payload").await;
        assert!(hex.starts_with("0000 7b 22 6e 22 3a 39 30 30 37 31 39 39 32 35 34 37 {\"n\":90071992547\n0010 34 30 39"), "{hex}");
        assert_eq!(data(&page, "Result").await, indented, "the other data keep their form");

        page.open("#/jobs/text").await;
        page.shows("application/json, 5 bytes").await;
        page.click("Payload as text").await;
        assert_eq!(data(&page, "Payload").await, "\"abc\"");

        page.open("#/jobs/bytes").await;
        page.shows("image/png, 35 bytes").await;
        assert!(data(&page, "Payload").await.starts_with("0000 89 50 4e 47 ff 00 3c 69 6d 67 3e 0d 0a 20 61 6e .PNG..<img>.. an\n"));
        for (form, enabled) in [("json", false), ("text", false), ("hex", true)] {
            assert_eq!(page.is_enabled(&format!("Payload as {form}")).await, enabled, "{form}");
        }
    })
    .await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_job_shows_its_progress_checkpoint_and_trace_and_its_worker_lists_it() {
    let stage = Stage::new("console-running").await;
    let handlers = Handlers::new().job("mark", |context, (): ()| async move {
        context.progress(40, "sending")?;
        context.checkpoint(*b"\x00half")?;
        context.cancelled().await;
        Ok(())
    });
    let node = Node::builder(&stage.to).handlers(handlers).slots(4).start().await.unwrap();
    let trace = "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let job = Ask::post("/v1/jobs", r#"{"id": "a", "kind": "mark"}"#).header(trace);
    job.of(stage.address()).await.is(201);
    stage.post("/v1/jobs", r#"{"id": "b", "kind": "mark"}"#).await.is(201);
    browse(stage.address(), async |page| {
        page.open("#/jobs/a").await;
        page.shows("40 % sending").await;
        assert_eq!(page.run("return document.querySelector('progress').value").await, 40);
        page.shows("0af7651916cd43dd8448eb211c80319c").await;
        assert_eq!(data(&page, "Checkpoint").await, "\0half");
        page.click("Checkpoint as hex").await;
        assert!(data(&page, "Checkpoint").await.starts_with("0000 00 68 61 6c 66 "));

        page.run("document.querySelector('.timeline a[href^=\"#/workers/\"]').click()").await;
        page.shows("What runs").await;
        page.shows("2 of 4 slots").await;
        let rows = "return [...document.querySelectorAll('tbody tr')].map((row) => row.dataset.key)";
        page.until("both jobs", async |page| page.run(rows).await == json!(["a", "b"])).await;
        page.shows("40 % sending").await;
        // A job that ends leaves the list without a reload.
        stage.post("/v1/jobs/b/cancel", "").await.is(200);
        page.until("the other job", async |page| page.run(rows).await == json!(["a"])).await;
        page.open("#/workers/00000000-0000-0000-0000-000000000007").await;
        page.shows("Not found").await;
        page.shows("it has left").await;
        stage.post("/v1/jobs/a/cancel", "").await.is(200);
    })
    .await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_are_listed_by_page_and_filtered_by_stage() {
    const GROUPS: usize = 430;
    let stage = Stage::new("console-groups").await;
    let node = stage.node().await;
    let client = Client::connect(&stage.to).await.unwrap();
    for number in 0..GROUPS {
        let group = bellwether::Group::new("nobody", &format!("group-{number:03}")).unwrap();
        client.group(group.without_join()).await.unwrap();
    }
    stage.post("/v1/groups/group-007/abandon", "").await.is(200);
    stage.get("/v1/groups/group-007/wait").await.is(200);
    let rows = async |page: &Page| page.run("return document.querySelectorAll('tbody tr').length").await;
    browse(stage.address(), async |page| {
        page.open("#/groups").await;
        page.shows("200 loaded").await;
        page.click("Show more").await;
        page.shows("400 loaded").await;
        page.click("Show more").await;
        page.shows("430 loaded, that is all").await;
        assert_eq!(rows(&page).await, GROUPS);
        page.run(
            "const field = document.querySelector('[name=stage]'); field.value = 'done'; \
             field.dispatchEvent(new Event('change'))",
        )
        .await;
        page.shows("1 loaded, that is all").await;
        page.shows("group-007").await;
        page.open("#/groups?stage=joining").await;
        page.shows("No group is in this stage").await;
    })
    .await;
    node.stop().await;
}

//! What pages show of a job, a worker and a list, in detail.

use bellwether::{Client, Handlers, Job, Node};
use serde_json::json;

use crate::ask::Ask;
use crate::browser::{Page, ZONE, browse};
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
    let bytes = Job::raw("nobody", "image/png", *b"\x89PNG\xff\x00<img>\r\n and more than sixteen");
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
async fn jobs_are_filtered_by_state_kind_lane_and_group_by_form_and_by_address() {
    let stage = Stage::new("console-filters").await;
    for job in [
        r#"{"id": "plain", "kind": "nobody"}"#,
        r#"{"id": "laned", "kind": "nobody", "options": {"lane": "account-1"}}"#,
        r#"{"id": "other", "kind": "someone"}"#,
        r#"{"id": "ended", "kind": "nobody"}"#,
    ] {
        stage.post("/v1/jobs", job).await.is(201);
    }
    stage.post("/v1/jobs/ended/cancel", "").await.is(200);
    stage.post("/v1/groups", r#"{"kind": "nobody", "id": "g"}"#).await.is(200);
    stage.post("/v1/groups/g/members", r#"{"jobs": [{"kind": "nobody"}]}"#).await.is(200);
    let cases = [
        ("state", "cancelled", json!(["ended"])),
        ("kind", "someone", json!(["other"])),
        ("lane", "account-1", json!(["laned"])),
        ("group", "g", json!(["nobody:g:0"])),
    ];
    let rows =
        "return [...document.querySelectorAll('tbody tr[aria-rowindex]')].map((row) => row.dataset.key)";
    browse(stage.address(), async |page| {
        for (name, value, expected) in cases {
            for by_form in [false, true] {
                if by_form {
                    page.open("#/jobs").await;
                    page.shows("5 loaded, that is all").await;
                    let choose = format!(
                        "const field = document.querySelector('[name={name}]'); field.value = '{value}'; \
                         field.dispatchEvent(new Event('change'))"
                    );
                    page.run(&choose).await;
                } else {
                    page.open(&format!("#/jobs?{name}={value}")).await;
                }
                page.shows("1 loaded, that is all").await;
                assert_eq!(page.run(rows).await, expected, "{name}, {by_form}");
                assert_eq!(page.run("return location.hash").await, format!("#/jobs?{name}={value}"));
                let shown = page.run(&format!("return document.querySelector('[name={name}]').value")).await;
                assert_eq!(shown, value);
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn selected_dead_jobs_are_retried() {
    let stage = Stage::new("console-retry").await;
    let node = stage.node().await;
    for id in ["a", "b", "c"] {
        stage
            .post("/v1/jobs", &format!(r#"{{"id": "{id}", "kind": "sum", "payload": "text"}}"#))
            .await
            .is(201);
        stage.get(&format!("/v1/jobs/{id}/wait")).await.is(200);
    }
    stage.post("/v1/kinds/sum/pause", "").await.is(200);
    browse(stage.address(), async |page| {
        page.open("#/jobs").await;
        page.shows("3 loaded").await;
        page.click("Select a").await;
        page.click("Select b").await;
        page.click("Retry selected").await;
        page.shows("Retry 2 of 2 selected jobs?").await;
        page.click("Retry 2 jobs").await;
        page.shows("2 jobs retried.").await;
        for (id, state, generation) in [("a", "queued", 2), ("b", "queued", 2), ("c", "dead", 1)] {
            let job = stage.get(&format!("/v1/jobs/{id}")).await.is(200).json();
            assert_eq!((&job["state"], &job["generation"]), (&json!(state), &json!(generation)), "{id}");
        }
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
        let group = bellwether::Group::new("nobody", format!("group-{number:03}"));
        client.group(group.join(false)).await.unwrap();
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

#[tokio::test(flavor = "multi_thread")]
async fn a_short_list_of_jobs_begins_with_the_newest() {
    let stage = Stage::new("console-newest").await;
    let mut newest = Vec::new();
    for id in ["c", "a", "e", "b", "d", "f"] {
        stage.post("/v1/jobs", &format!(r#"{{"id": "{id}", "kind": "nobody"}}"#)).await.is(201);
        newest.insert(0, id);
    }
    browse(stage.address(), async |page| {
        page.open("#/jobs").await;
        page.shows("6 loaded, that is all").await;
        let shown = "return [...document.querySelectorAll('tbody a')].map((link) => link.textContent)";
        assert_eq!(page.run(shown).await, json!(newest));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_payload_of_a_schedule_is_shown_as_it_is_stored() {
    let stage = Stage::new("console-schedule-payload").await;
    let add = async |payload: &str, replace: bool| {
        let body = format!(
            r#"{{"id": "nightly", "every": "1h", "replace": {replace}, "job": {{"kind": "sum", "payload": {payload}}}}}"#
        );
        stage.post("/v1/schedules", &body).await
    };
    let exact = r#"{"n":10000000000000000000001}"#;
    add(exact, false).await.is(201);
    browse(stage.address(), async |page| {
        page.open("#/schedules/nightly").await;
        page.shows("application/json, 29 bytes").await;
        assert_eq!(data(&page, "Payload").await, "{\n  \"n\": 10000000000000000000001\n}");
        page.click("Payload as text").await;
        assert_eq!(data(&page, "Payload").await, exact);
        page.click("Payload as hex").await;
        assert!(data(&page, "Payload").await.starts_with("0000 7b 22 6e"));
        add("[1]", true).await.is(200);
        page.shows("application/json, 3 bytes").await;
        assert!(data(&page, "Payload").await.starts_with("0000 5b 31 5d"), "the chosen form stays");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn times_are_local_and_their_tooltips_have_utc() {
    let stage = Stage::new("console-times-utc").await;
    let every = r#"{"id": "yearly", "cron": "0 12 1 7 *", "job": {"kind": "sum"}}"#;
    stage.post("/v1/schedules", every).await.is(201);
    stage.post("/v1/jobs", r#"{"id": "a", "kind": "nobody"}"#).await.is(201);
    browse(stage.address(), async |page| {
        let zone = page.run("return Intl.DateTimeFormat().resolvedOptions().timeZone").await;
        assert_eq!(zone, ZONE);
        page.open("#/schedules/yearly").await;
        page.shows("Next ticks").await;
        let tick = page
            .run("const time = document.querySelector('section ol time'); return [time.textContent, time.title, time.dateTime]")
            .await;
        let [local, tooltip, instant] = [0, 1, 2].map(|at| tick[at].as_str().unwrap().to_owned());
        assert!(local.contains("2:00:00 PM"), "two hours from UTC in July: {local}");
        assert_eq!((instant.get(4..), tooltip), (Some("-07-01T12:00:00.000Z"), format!("{instant} (UTC)")));
        page.open("#/jobs").await;
        page.shows("1 loaded").await;
        let submitted = page.run("return document.querySelector('tbody time').title").await;
        let (local, utc) = submitted.as_str().unwrap().split_once('\n').unwrap();
        assert!(local.ends_with('M') && utc.ends_with("Z (UTC)"), "{submitted}");
    })
    .await;
}

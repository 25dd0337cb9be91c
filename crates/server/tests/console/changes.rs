//! What an operator changes in the console.

use std::time::Duration;

use bellwether::{Client, JobId, State};
use bellwether_testkit::eventually;

use serde_json::json;

use crate::browser::{Page, browse};
use crate::pages::violations;
use crate::stage::Stage;

/// Records of the last minute are not purged.
const OLD_ENOUGH: Duration = Duration::from_secs(90);

async fn state(client: &Client, id: &str) -> State {
    client.get(&JobId::new(id).unwrap()).await.unwrap().unwrap().state
}

#[tokio::test(flavor = "multi_thread")]
async fn selected_jobs_are_cancelled_and_one_is_retried() {
    let stage = Stage::new("console-jobs").await;
    for id in ["a", "b", "c"] {
        stage.post("/v1/jobs", &format!(r#"{{"id": "{id}", "kind": "nobody"}}"#)).await.is(201);
    }
    let client = Client::connect(&stage.to).await.unwrap();
    browse(stage.address(), async |page| {
        page.open("#/jobs").await;
        page.shows("3 loaded").await;
        page.click("Select a").await;
        page.click("Select b").await;
        page.shows("2 selected").await;
        page.click("Cancel selected").await;
        page.shows("Cancel 2 of 2 selected jobs?").await;
        assert_eq!(state(&client, "a").await, State::Queued, "nothing happens before the confirmation");
        page.click("Cancel 2 jobs").await;
        page.shows("2 jobs cancelled.").await;
        assert_eq!(state(&client, "a").await, State::Cancelled);
        assert_eq!(state(&client, "b").await, State::Cancelled);
        assert_eq!(state(&client, "c").await, State::Queued);

        page.open("#/jobs/a").await;
        page.click("Retry").await;
        page.click("Retry the job").await;
        page.shows("no live worker has a handler").await;
        assert_eq!(state(&client, "a").await, State::Queued);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_of_selected_jobs_counts_first_and_then_removes_their_records() {
    let stage = Stage::new("console-purge").await;
    for id in ["open", "ended"] {
        stage.post("/v1/jobs", &format!(r#"{{"id": "{id}", "kind": "nobody"}}"#)).await.is(201);
    }
    stage.post("/v1/jobs/ended/cancel", "").await.is(200);
    let client = Client::connect(&stage.to).await.unwrap();
    let purge = async |page: &Page| {
        page.open("#/jobs").await;
        page.shows("2 loaded").await;
        page.click("Select all loaded jobs").await;
        page.click("Purge selected").await;
        page.shows("of 2 selected records?").await;
    };
    browse(stage.address(), async |page| {
        purge(&page).await;
        page.shows("Remove 0 of 2 selected records?").await;
        page.shows("Kept because they ended within the last minute: 1.").await;
        page.shows("or cannot be read: 1.").await;
        page.click("Cancel").await;
        eventually("the record is old enough", OLD_ENOUGH, async || {
            let counted = stage.post("/v1/purge", r#"{"jobs": ["ended"]}"#).await.is(200).json();
            counted["matched"] == 1
        })
        .await;
        purge(&page).await;
        page.shows("Remove 1 of 2 selected records?").await;
        assert_eq!(state(&client, "ended").await, State::Cancelled, "the dry run removes nothing");
        page.click("Remove").await;
        page.shows("1 record removed.").await;
        page.shows("1 loaded").await;
        assert_eq!(client.get(&JobId::new("ended").unwrap()).await, Ok(None));
        assert_eq!(state(&client, "open").await, State::Queued);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_filtered_by_the_time_of_their_submission_and_of_their_end() {
    let stage = Stage::new("console-times").await;
    for id in ["open", "ended"] {
        stage.post("/v1/jobs", &format!(r#"{{"id": "{id}", "kind": "nobody"}}"#)).await.is(201);
    }
    stage.post("/v1/jobs/ended/cancel", "").await.is(200);
    browse(stage.address(), async |page| {
        page.open("#/jobs?finished_after=2020-01-01T00:00:00Z").await;
        page.shows("1 loaded, that is all").await;
        assert!(page.text().await.contains("ended"));
        let from = page.run("return document.querySelector('[name=after]').value").await;
        assert!(from.as_str().unwrap().starts_with("20"), "the field shows the bound: {from}");
        page.run(
            "const field = document.querySelector('[name=before]'); field.value = '2021-01-01T00:00'; \
             field.dispatchEvent(new Event('change'))",
        )
        .await;
        page.shows("No job matches the filter").await;
        let hash = page.run("return location.hash").await;
        assert!(hash.as_str().unwrap().contains("finished_before=202"), "{hash}");
        page.open("#/jobs?submitted_after=2020-01-01T00:00:00Z").await;
        page.shows("2 loaded, that is all").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dialog_that_is_cancelled_changes_nothing() {
    let stage = Stage::new("console-cancel").await;
    stage.post("/v1/jobs", r#"{"id": "a", "kind": "nobody"}"#).await.is(201);
    let client = Client::connect(&stage.to).await.unwrap();
    browse(stage.address(), async |page| {
        page.open("#/jobs/a").await;
        page.click("Cancel").await;
        page.shows("Cancel a?").await;
        page.click("Keep the job").await;
        page.hides("Cancel a?").await;
        assert_eq!(state(&client, "a").await, State::Queued);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_is_paused_and_resumed_and_a_worker_drained() {
    let stage = Stage::new("console-kinds").await;
    let node = stage.node().await;
    browse(stage.address(), async |page| {
        page.open("#/kinds").await;
        page.click("Pause sum").await;
        page.fill("note", "the disk is full").await;
        page.click("Pause").await;
        page.shows("paused by").await;
        page.shows(": the disk is full").await;
        page.click("Resume sum").await;
        page.hides("paused by").await;

        page.open("#/workers").await;
        page.shows("ready").await;
        let workers = stage.get("/v1/workers").await.is(200).json();
        page.click(&format!("Drain {}", workers[0]["node"].as_str().unwrap())).await;
        page.click("Drain").await;
        page.shows("No workers").await;
    })
    .await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_slots_and_kinds_of_a_worker_are_changed() {
    let stage = Stage::new("console-workers").await;
    let node = stage.node().await;
    browse(stage.address(), async |page| {
        page.open("#/workers").await;
        page.shows("0 of 8").await;
        let workers = stage.get("/v1/workers").await.is(200).json();
        page.click(&format!("Change {}", workers[0]["node"].as_str().unwrap())).await;
        page.fill("slots", "3").await;
        page.fill("paused", "sum").await;
        page.click("Change").await;
        page.shows("0 of 3").await;
        page.shows("(paused: sum)").await;
        page.open("#/kinds").await;
        page.shows("paused on 1 of its workers").await;
    })
    .await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_is_paused_triggered_and_removed() {
    let stage = Stage::new("console-schedules").await;
    let node = stage.node().await;
    let nightly = r#"{"id": "nightly", "cron": "30 2 * * *", "job": {"kind": "sum", "payload": [1]}}"#;
    stage.post("/v1/schedules", nightly).await.is(201);
    browse(stage.address(), async |page| {
        page.open("#/schedules/nightly").await;
        page.click("Pause").await;
        page.click("Resume").await;
        page.click("Trigger now").await;
        page.click("Trigger").await;
        page.shows("submitted nightly").await;
        page.click("Remove").await;
        page.click("Remove").await;
        page.shows("No schedules").await;
    })
    .await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_is_edited_with_a_preview_of_its_ticks() {
    let stage = Stage::new("console-edit").await;
    let nightly = r#"{"id": "nightly", "cron": "30 2 * * *", "job": {"kind": "sum", "payload": [1]}}"#;
    stage.post("/v1/schedules", nightly).await.is(201);
    browse(stage.address(), async |page| {
        page.open("#/schedules/nightly").await;
        page.shows("There are none since the schedule was added.").await;
        assert_eq!(page.run("return document.querySelectorAll('section ol li').length").await, 5);
        page.click("Edit").await;
        let previewed =
            "return [...document.querySelectorAll('.preview time')].map((at) => at.dateTime.slice(11))";
        page.until("the ticks of the present rule", async |page| {
            page.run(previewed).await == json!(vec!["02:30:00.000Z"; 5])
        })
        .await;
        let limits = async |page: &Page| {
            page.run("return document.querySelector('[name=catch_up_limit]').checkVisibility()").await
        };
        assert_eq!(limits(&page).await, false, "the policy makes up no missed tick");
        page.run("const of = document.querySelector('[name=misfire]'); of.value = 'catch_up'; of.dispatchEvent(new Event('input', { bubbles: true }))").await;
        assert_eq!(limits(&page).await, true);
        page.run("const of = document.querySelector('[name=misfire]'); of.value = 'once'; of.dispatchEvent(new Event('input', { bubbles: true }))").await;
        page.fill("time", "15 5 * * *").await;
        page.until("the ticks of the new rule", async |page| {
            page.run(previewed).await == json!(vec!["05:15:00.000Z"; 5])
        })
        .await;
        assert!(violations(&page).await.is_empty(), "the dialog is accessible");
        let stored = stage.get("/v1/schedules/nightly").await.is(200).json();
        assert_eq!(stored["cron"], "30 2 * * *", "the preview changes nothing");
        page.fill("time", "61 5 * * *").await;
        page.shows("cron field minute").await;
        page.fill("time", "15 5 * * *").await;
        page.hides("cron field minute").await;
        page.click("Save").await;
        page.shows("nightly was changed.").await;
        page.shows("15 5 * * *").await;
        let stored = stage.get("/v1/schedules/nightly").await.is(200).json();
        assert_eq!((&stored["cron"], &stored["misfire"]), (&json!("15 5 * * *"), &json!("once")));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_retention_is_changed_and_a_purge_counts_first() {
    let stage = Stage::new("console-settings").await;
    browse(stage.address(), async |page| {
        page.open("#/settings").await;
        page.fill("dead", "9d").await;
        page.click("Save").await;
        page.shows("The retention was changed.").await;
        assert_eq!(stage.get("/v1/retention").await.is(200).json()["dead"], "9d");
        page.fill("strategy", "rendezvous").await;
        page.click("Set").await;
        page.shows("The placement was changed.").await;
        page.shows("Set by").await;
        assert_eq!(stage.get("/v1/placement").await.is(200).json()["strategy"], "rendezvous");
        page.fill("dead", "soon").await;
        page.click("Save").await;
        page.shows("dead: \"soon\" is not a duration").await;

        page.click("Purge…").await;
        page.click("Count first").await;
        page.shows("Remove 0 records?").await;
        page.click("Cancel").await;
    })
    .await;
}

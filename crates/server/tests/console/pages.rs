//! What each page shows, on a large and on a small screen, and whether it is accessible.

use std::path::Path;

use serde_json::Value;

use crate::browser::{Page, browse};
use crate::stage::Stage;

/// The pages, and a text that each shows.
const PAGES: &[(&str, &str, &str)] = &[
    ("overview", "#/", "Per second"),
    ("jobs", "#/jobs", "that is all"),
    ("job", "#/jobs/sum-1", "Ended as succeeded"),
    ("waiting-job", "#/jobs/waiting", "no live worker has a handler for kind nobody"),
    ("dead-job", "#/jobs/dead", "does not fit kind sum"),
    ("groups", "#/groups", "report-1"),
    ("group", "#/groups/report-1", "not sealed yet"),
    ("schedules", "#/schedules", "Europe/Berlin"),
    ("schedule", "#/schedules/nightly", "Next ticks"),
    ("schedule-with-ticks", "#/schedules/often", "often@"),
    ("lanes", "#/lanes", "account-1"),
    ("kinds", "#/kinds", "echo"),
    ("workers", "#/workers", "of 8"),
    ("worker", "#/workers/{worker}", "long-1"),
    ("settings", "#/settings", "Records at most"),
    ("audit", "#/audit", "submit_job"),
    ("running-job", "#/jobs/long-1", "Checkpoint"),
    ("not-found", "#/jobs/unknown", "Not found"),
    ("no-page", "#/typo", "There is no page"),
];

async fn fill(stage: &Stage) {
    for job in [
        r#"{"id": "sum-1", "kind": "sum", "payload": [1, 2]}"#,
        r#"{"id": "waiting", "kind": "nobody"}"#,
        r#"{"id": "long-1", "kind": "sleep", "payload": {"millis": 600000}}"#,
        r#"{"id": "long-2", "kind": "sleep", "payload": {"millis": 300000}}"#,
        r#"{"id": "dead", "kind": "sum", "payload": "text"}"#,
        r#"{"id": "first", "kind": "nobody", "options": {"lane": "account-1"}}"#,
        r#"{"id": "second", "kind": "nobody", "options": {"lane": "account-1"}}"#,
    ] {
        stage.post("/v1/jobs", job).await.is(201);
    }
    stage.post("/v1/groups", r#"{"kind": "sum", "id": "report-1"}"#).await.is(200);
    let nightly =
        r#"{"id": "nightly", "cron": "30 2 * * *", "zone": "Europe/Berlin", "job": {"kind": "sum"}}"#;
    stage.post("/v1/schedules", nightly).await.is(201);
    let often = r#"{"id": "often", "every": "1s", "job": {"kind": "sum", "payload": [1]}}"#;
    stage.post("/v1/schedules", often).await.is(201);
    for id in ["sum-1", "dead"] {
        stage.get(&format!("/v1/jobs/{id}/wait")).await.is(200);
    }
}

/// Returns the violations that axe finds.
pub(crate) async fn violations(page: &Page) -> Vec<String> {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/node_modules/axe-core/axe.min.js");
    let axe = std::fs::read_to_string(&file)
        .unwrap_or_else(|error| panic!("{error}: run `npm install --prefix target/tools axe-core`"));
    page.run(&axe).await;
    let script = "const done = arguments[0]; axe.run().then(({ violations }) => done(violations))";
    let found = page.client.execute_async(script, Vec::new()).await.unwrap();
    let describe = |one: &Value| format!("{}: {}", one["id"], one["nodes"][0]["html"]);
    found.as_array().unwrap().iter().map(describe).collect()
}

/// Returns by how many pixels the page is wider than the window, or, on a small screen, a table than its place.
pub(crate) async fn too_wide(page: &Page) -> i64 {
    let script = "const tables = innerWidth > 640 ? [] : [...document.querySelectorAll('.scroll')];
        return Math.max(document.documentElement.scrollWidth - innerWidth, ...tables.map((one) => one.scrollWidth - one.clientWidth))";
    page.run(script).await.as_i64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_page_shows_its_content_is_accessible_light_and_dark_and_fits_on_a_small_screen() {
    let stage = Stage::new("console-pages").await;
    let node = stage.node().await;
    fill(&stage).await;
    let job = stage.get("/v1/jobs/sum-1").await.is(200).json();
    let worker = job["worker"].as_str().unwrap();
    browse(stage.address(), async |page| {
        for (name, address, text) in PAGES {
            let address = address.replace("{worker}", worker);
            // A small screen has the same colours.
            for (size, width, schemes) in
                [("large", 1280, &["light", "dark"][..]), ("small", 375, &["light"])]
            {
                page.looks(width, 900).await;
                page.open(&address).await;
                page.shows(text).await;
                for scheme in schemes {
                    let at = format!("{name}-{size}{}", if *scheme == "dark" { "-dark" } else { "" });
                    page.prefers(scheme).await;
                    page.screenshot(&at).await;
                    assert_eq!(violations(&page).await, Vec::<String>::new(), "{at}");
                    let wider = too_wide(&page).await;
                    assert!(wider <= 0, "{at}: {wider} pixels too wide");
                    let background = page.run("return getComputedStyle(document.body).backgroundColor").await;
                    assert_eq!(background == "rgb(18, 22, 28)", *scheme == "dark", "{at}");
                }
            }
        }
    })
    .await;
    for job in ["long-1", "long-2"] {
        stage.post(&format!("/v1/jobs/{job}/cancel"), "").await.is(200);
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_without_content_name_the_command_that_creates_some() {
    let stage = Stage::new("console-empty").await;
    browse(stage.address(), async |page| {
        for (address, text) in [
            ("#/", "There are no workers. Start one with bellwether node."),
            ("#/jobs", "bellwether job submit"),
            ("#/groups", "--group g"),
            ("#/schedules", "bellwether schedule add"),
            ("#/lanes", "--lane account-1"),
            ("#/kinds", "bellwether node"),
            ("#/workers", "bellwether node"),
        ] {
            page.open(address).await;
            page.shows(text).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_overview_links_to_the_oldest_waiting_job() {
    let stage = Stage::new("console-oldest").await;
    let submitted = |id: &str| format!(r#"{{"id": "{id}", "kind": "nobody"}}"#);
    for id in ["z-oldest", "a-later", "m-latest"] {
        stage.post("/v1/jobs", &submitted(id)).await.is(201);
    }
    browse(stage.address(), async |page| {
        page.open("#/").await;
        page.shows("Oldest waiting").await;
        page.shows("z-oldest").await;
        page.run("document.querySelector('.card[href=\"#/jobs/z-oldest\"]').click()").await;
        page.shows("no live worker has a handler").await;
        assert_eq!(page.run("return document.title").await, "z-oldest · Bellwether");
    })
    .await;
}

/// Text from the cluster is not HTML.
#[tokio::test(flavor = "multi_thread")]
async fn a_payload_with_markup_is_shown_as_text() {
    let stage = Stage::new("console-markup").await;
    let markup = r#"{"id": "a", "kind": "nobody", "payload": "<img src=x onerror=document.title='owned'>"}"#;
    stage.post("/v1/jobs", markup).await.is(201);
    browse(stage.address(), async |page| {
        page.open("#/jobs/a").await;
        page.shows("<img src=x onerror").await;
        assert_eq!(page.run("return document.querySelectorAll('main img').length").await, 0);
        assert_eq!(page.run("return document.title").await, "a · Bellwether");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_ten_thousand_jobs_draws_only_the_rows_in_view() {
    let stage = Stage::new("console-crowd").await;
    for thousand in 0..10 {
        let jobs = (0..1_000).map(|n| format!(r#"{{"id": "job-{thousand}-{n}", "kind": "nobody"}}"#));
        let body = format!(r#"{{"jobs": [{}]}}"#, jobs.collect::<Vec<_>>().join(","));
        stage.post("/v1/batch", &body).await.is(200);
    }
    browse(stage.address(), async |page| {
        page.open("#/jobs").await;
        page.shows("200 loaded").await;
        page.until("all jobs are loaded", async |page| {
            page.run("const box = document.querySelector('.scroll'); box.scrollTop = box.scrollHeight").await;
            page.text().await.contains("10,000 loaded, that is all")
        })
        .await;
        let rows = page.run("return document.querySelectorAll('tbody tr').length").await;
        assert!(rows.as_u64().unwrap() < 100, "{rows} rows");
        draws_are_bounded_by_frames(&stage, &page).await;
        // A larger window shows more rows without a scroll.
        page.looks(1280, 400).await;
        page.run("const box = document.querySelector('.scroll'); box.scrollTop = 0").await;
        page.looks(1280, 1600).await;
        page.until("rows fill the larger window", async |page| {
            let covered = "const box = document.querySelector('.scroll'), body = box.querySelector('tbody'); \
                const last = [...body.rows].at(-2).getBoundingClientRect(); \
                return box.clientHeight > 800 && last.bottom >= box.getBoundingClientRect().bottom";
            page.run(covered).await == true
        })
        .await;
    })
    .await;
}

/// A busy cluster has thousands of events per second.
async fn draws_are_bounded_by_frames(stage: &Stage, page: &Page) {
    const EVENTS: usize = 2_000;
    page.shows("Live").await;
    page.run(
        "window.draws = 0; window.frames = 0; const set = Element.prototype.setAttribute; \
         Element.prototype.setAttribute = function (name, value) { \
           window.draws += name === 'aria-rowcount'; set.call(this, name, value); }; \
         const frame = () => { window.frames += 1; requestAnimationFrame(frame); }; frame()",
    )
    .await;
    for thousand in 0..EVENTS / 1_000 {
        let jobs = (0..1_000).map(|n| format!(r#"{{"id": "more-{thousand}-{n}", "kind": "nobody"}}"#));
        let body = format!(r#"{{"jobs": [{}]}}"#, jobs.collect::<Vec<_>>().join(","));
        stage.post("/v1/batch", &body).await.is(200);
    }
    page.shows("Jobs have changed").await;
    // Events arrive in order: when the page shows the last one, all earlier ones have arrived.
    page.run("document.querySelector('.scroll').scrollTop = 0").await;
    let first = "return document.querySelector('tr[aria-rowindex=\"2\"]')?.dataset.key";
    page.until("the first row is drawn", async |page| page.run(first).await.is_string()).await;
    let first = page.run(first).await;
    stage.post(&format!("/v1/jobs/{}/cancel", first.as_str().unwrap()), "").await.is(200);
    let state = "return document.querySelector('tr[aria-rowindex=\"2\"] .badge')?.textContent ?? ''";
    page.until("the last event has arrived", async |page| page.run(state).await == "cancelled").await;
    let counted = page.run("return [window.draws, window.frames]").await;
    let [draws, frames] = [0, 1].map(|at| counted[at].as_u64().unwrap());
    // A scroll draws for itself.
    assert!((1..=frames + 2).contains(&draws), "{draws} draws in {frames} frames");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_and_the_search_field_lead_to_pages() {
    let stage = Stage::new("console-keys").await;
    stage.post("/v1/jobs", r#"{"id": "far/away", "kind": "nobody"}"#).await;
    stage.post("/v1/jobs", r#"{"id": "far-away", "kind": "nobody"}"#).await.is(201);
    browse(stage.address(), async |page| {
        page.open("#/").await;
        page.shows("Overview").await;
        let press = async |key: &str| {
            let active = page.client.active_element().await.unwrap();
            active.send_keys(key).await.unwrap();
        };
        press("2").await;
        page.shows("Cancel selected").await;
        press("/").await;
        press("far-away\n").await;
        page.shows("no live worker has a handler").await;
        // The page of a job has no search field, so `?` is a key again.
        press("?").await;
        page.shows("go to the search field").await;
        assert_eq!(violations(&page).await, Vec::<String>::new(), "the help");
        page.click("Close").await;
        page.hides("go to the search field").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_skip_link_leads_to_the_content_of_the_same_page() {
    let stage = Stage::new("console-skip").await;
    browse(stage.address(), async |page| {
        page.open("#/jobs?kind=nobody").await;
        page.shows("No job matches the filter").await;
        page.run("document.querySelector('.skip').focus()").await;
        page.client.active_element().await.unwrap().send_keys("\n").await.unwrap();
        let focused = async |page: &Page| page.run("return document.activeElement.id").await == "main";
        page.until("the content has the focus", focused).await;
        assert_eq!(page.run("return location.hash").await, "#/jobs?kind=nobody");
        page.shows("No job matches the filter").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_without_a_page_is_not_found() {
    let stage = Stage::new("console-typo").await;
    browse(stage.address(), async |page| {
        for address in ["#/typo", "#/settings/retention", "#/jobs/%", "#main"] {
            page.open(address).await;
            page.shows("Not found").await;
            page.shows("There is no page").await;
        }
        page.click("Overview").await;
        page.shows("Per second").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_the_api_works_under_its_content_security_policy() {
    let stage = Stage::new("console-docs").await;
    browse(stage.address(), async |page: Page| {
        page.open("docs/").await;
        page.shows("Explain why a job does not run").await;
    })
    .await;
}

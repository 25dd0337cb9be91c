//! Alerts, attempts, and rates and run times of kinds.

use bellwether::{HandlerError, Handlers, Node};
use bellwether_core::clock_report::{ClockReport, Process};
use bellwether_core::outcome::Outcome;
use bellwether_core::txn;
use bellwether_testkit::eventually;
use serde_json::Value;

use crate::browser::{Page, browse};
use crate::pages::{too_wide, violations};
use crate::stage::{SOON, Stage};

#[tokio::test(flavor = "multi_thread")]
async fn the_overview_shows_alerts_with_their_runbooks() {
    let stage = Stage::new("console-alerts").await;
    stage.post("/v1/jobs", r#"{"id": "a", "kind": "nobody"}"#).await.is(201);
    browse(stage.address(), async |page| {
        page.open("#/").await;
        page.shows("jobs wait for a kind that no worker serves: nobody").await;
        page.shows("NamespaceOpen").await;
        let link = page
            .run("return [...document.querySelectorAll('.warnings a')].find((a) => a.innerText === 'KindWithoutWorker').href")
            .await;
        assert!(link.as_str().unwrap().ends_with("docs/operations.md#why-does-this-job-not-run"), "{link}");
        assert_eq!(violations(&page).await, Vec::<String>::new());
        page.looks(375, 900).await;
        assert!(too_wide(&page).await <= 0);
        page.screenshot("alerts-small").await;
        // The next sample finds no waiting job.
        stage.post("/v1/jobs/a/cancel", "").await.is(200);
        page.hides("KindWithoutWorker").await;
        // Two samples make a line.
        let lines = "return [...document.querySelectorAll('.chart svg path')].map((path) => path.getAttribute('d'))";
        page.until("the charts have lines", async |page| {
            let lines = page.run(lines).await;
            let drawn = |line: &Value| line.as_str().is_some_and(|line| line.starts_with('M') && line.contains('L'));
            lines.as_array().unwrap().iter().filter(|line| drawn(line)).count() >= 2
        })
        .await;
        let samples = stage.get("/v1/samples").await.is(200).json();
        let last = samples["samples"].as_array().unwrap().last().unwrap().clone();
        for rate in ["submitted_per_second", "finished_per_second", "dead_per_second"] {
            assert!(last[rate].is_number(), "{rate}: {last}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_overview_counts_the_jobs_that_die_also_before_it_is_opened() {
    let stage = Stage::new("console-dead").await;
    let node = stage.node().await;
    let dies = async |id: &str| {
        let job = format!(r#"{{"id": "{id}", "kind": "sum", "payload": "text"}}"#);
        stage.post("/v1/jobs", &job).await.is(201);
        stage.get(&format!("/v1/jobs/{id}/wait")).await.is(200);
    };
    let mut before = 0;
    // The gateway counts from its first sample.
    eventually("a dead job is counted", SOON, async || {
        before += 1;
        dies(&format!("before-{before}")).await;
        stage.get("/v1/kinds/statistics").await.is(200).json()["dead"].as_u64() > Some(0)
    })
    .await;
    let card = "return document.querySelector('.card[href^=\"#/jobs?state=dead\"]')?.innerText ?? ''";
    // The number of dead jobs, if the card states for how long they were counted.
    let dead = async |page: &Page| {
        let card = page.run(card).await;
        let lines = card.as_str().unwrap().lines().collect::<Vec<_>>();
        let ["Dead", number, counted] = lines[..] else { return None };
        number.parse::<u64>().ok().filter(|_| counted.starts_with("counted for "))
    };
    browse(stage.address(), async |page| {
        page.open("#/").await;
        page.shows("Live").await;
        page.until("it shows the count", async |page| dead(page).await > Some(0)).await;
        let shown = dead(&page).await;
        dies("during").await;
        page.until("the dead job is counted", async |page| dead(page).await > shown).await;
        // The list has all of them: it reads the records.
        page.run("document.querySelector('.card[href^=\"#/jobs?state=dead\"]').click()").await;
        page.shows(&format!("{} loaded, that is all", before + 1)).await;
    })
    .await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_overview_names_hosts_with_a_wrong_clock() {
    let stage = Stage::new("console-clocks").await;
    let zk = bellwether_zk::connect(&stage.to.parse().unwrap(), SOON).await.unwrap();
    for (session, host, ahead) in [(1, "db-1", -12), (2, "db-1", -12), (3, "db-2", 45)] {
        let process = Process { node: None, host: host.to_owned() };
        let report = vec![txn::report_clock(session, &ClockReport { process, ahead })];
        assert_eq!(zk.commit(report).await, Outcome::Applied(()));
    }
    browse(stage.address(), async |page| {
        page.open("#/").await;
        page.shows("The clock of db-1 is 12 s behind ZooKeeper's.").await;
        page.shows("The clock of db-2 is 45 s ahead of ZooKeeper's.").await;
        let named = page.text().await.matches("The clock of db-1").count();
        assert_eq!(named, 1, "once per host");
        assert_eq!(violations(&page).await, Vec::<String>::new());
        // The reports end with the session of their process.
        drop(zk);
        page.hides("The clock of").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_shows_each_attempt_with_its_worker_and_its_error() {
    let stage = Stage::new("console-attempts").await;
    let fails = Handlers::new().job("mail", |context, (): ()| async move {
        Err::<(), _>(HandlerError::new(format!("no route in attempt {}", context.attempt())))
    });
    let node = Node::builder(&stage.to).handlers(fails).start().await.unwrap();
    let job = r#"{"id": "a", "kind": "mail", "payload": null, "options": {"max_attempts": 2, "backoff": {"initial": "1ms", "max": "1ms"}}}"#;
    stage.post("/v1/jobs", job).await.is(201);
    stage.get("/v1/jobs/a/wait").await.is(200);
    browse(stage.address(), async |page| {
        page.open("#/jobs/a").await;
        page.shows("Ended as dead").await;
        let workers = stage.get("/v1/workers").await.is(200).json();
        let steps =
            page.run("return [...document.querySelectorAll('.timeline li')].map((li) => li.innerText)").await;
        let steps = steps.as_array().unwrap().iter().map(Value::to_string).collect::<Vec<_>>();
        assert_eq!(steps.len(), 4, "{steps:?}");
        for (attempt, step) in [(1, &steps[1]), (2, &steps[2])] {
            assert!(step.contains(&format!("Attempt {attempt} failed after ")), "{step}");
            assert!(step.contains(&format!("no route in attempt {attempt}")), "{step}");
            assert!(step.contains(workers[0]["id"].as_str().unwrap()), "{step}");
        }
        assert_eq!(violations(&page).await, Vec::<String>::new());
        page.looks(375, 900).await;
        assert!(too_wide(&page).await <= 0);
        page.screenshot("attempts-small").await;
    })
    .await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_show_rates_and_run_times_of_jobs_that_end_while_the_console_is_open() {
    let stage = Stage::new("console-rates").await;
    let node = stage.node().await;
    browse(stage.address(), async |page| {
        page.open("#/kinds").await;
        page.shows("Live").await;
        for id in 0..3 {
            stage.post("/v1/jobs", &format!(r#"{{"id": "{id}", "kind": "sum", "payload": [1]}}"#)).await.is(201);
        }
        stage.post("/v1/jobs", r#"{"id": "dead", "kind": "sum", "payload": "text"}"#).await.is(201);
        let cells = "return [...document.querySelectorAll('tr[data-key=sum] td')].slice(4, 8).map((td) => td.innerText)";
        page.until("rates and run times", async |page| {
            let cells = page.run(cells).await;
            let filled = |at: usize| cells[at].as_str().is_some_and(|text| text.contains(|c: char| c.is_ascii_digit()));
            (0..4).all(filled) && cells[0] != "0.0" && cells[1] != "0.0"
        })
        .await;
        page.screenshot("kinds-rates").await;
    })
    .await;
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_oldest_waiting_job_of_a_long_queue_is_marked_as_one_of_the_most_urgent() {
    let stage = Stage::new("console-sampled").await;
    let jobs = (0..600).map(|n| format!(r#"{{"id": "job-{n}", "kind": "nobody-{}"}}"#, n % 2));
    let body = format!(r#"{{"jobs": [{}]}}"#, jobs.collect::<Vec<_>>().join(","));
    stage.post("/v1/batch", &body).await.is(200);
    browse(stage.address(), async |page| {
        page.open("#/").await;
        page.shows("of the most urgent jobs").await;
    })
    .await;
}

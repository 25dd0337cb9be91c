//! Runs every expression of every dashboard on a real Prometheus that scrapes three nodes under faults.
//!
//! The nodes are processes under load. A reply is lost, a session expires, the leader and a worker are killed, a worker
//! drains; jobs fail, become dead and are cancelled. Then every expression must return data, and the metrics of these
//! events must have changed. Requires Debian's `prometheus`, but not Grafana.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod node;
mod prometheus;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bellwether::schedule::Overlap;
use bellwether::{Client, Group, Job, JobId, Schedule, State};
use bellwether_core::metric::{self, MetricType};
use bellwether_dashboards::boards;
use bellwether_dashboards::{grafana, promql};
use bellwether_testkit::{Cut, Proxy, Request, command, eventually, namespace, op};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::sleep;

use node::Node;
use prometheus::Prometheus;

/// Longer than any recovery.
pub(crate) const SOON: Duration = Duration::from_secs(30);
/// The interval between requests to the gateway.
const BETWEEN_REQUESTS: Duration = Duration::from_millis(200);
/// The value of Grafana's `$__rate_interval` at this scrape interval.
const RATE_INTERVAL: &str = "5s";

/// The metrics that change in this test.
const MOVED: &[&str] = &[
    metric::JOB_ATTEMPTS_ASSIGNED,
    metric::JOBS_DEAD,
    metric::JOB_ATTEMPTS_RUNNING,
    metric::QUEUE_DEPTH,
    metric::DELAYED_JOBS_IN_HORIZON,
    metric::WORKERS,
    metric::SLOTS,
    metric::SLOTS_USED,
    metric::ASSIGNMENT_DURATION_SECONDS,
    metric::HANDLER_DURATION_SECONDS,
    metric::JOB_END_TO_END_DURATION_SECONDS,
    metric::ORPHANED_ATTEMPTS_RECOVERED,
    metric::LEADERSHIP_STATE,
    metric::LEADERSHIP_TRANSITIONS,
    metric::EPOCH,
    metric::SESSION_CONNECTED,
    metric::SESSIONS_CREATED,
    metric::SESSION_RECONNECTS,
    metric::SESSIONS_EXPIRED,
    metric::SESSION_MARGIN_SECONDS,
    metric::SESSION_TIMEOUT_SECONDS,
    metric::ZOOKEEPER_HEARTBEAT_DURATION_SECONDS,
    metric::ZOOKEEPER_REQUESTS,
    metric::ZOOKEEPER_OPERATIONS,
    metric::ZOOKEEPER_REQUEST_DURATION_SECONDS,
    metric::ZOOKEEPER_UNKNOWN_OUTCOMES,
    metric::UNKNOWN_OUTCOMES_RESOLVED,
    metric::WORKERS_LOST,
    metric::UNFINISHED_GROUPS,
    metric::SCHEDULES,
    metric::SCHEDULE_TICKS,
    metric::SCHEDULE_TICKS_SKIPPED,
    metric::HTTP_REQUESTS,
    metric::HTTP_REQUEST_DURATION_SECONDS,
];

/// The outcomes of attempts in this test. The jobs that a worker hands back at the end of its drain are not included,
/// because the process ends before the next scrape.
const OUTCOMES: &[&str] = &["succeeded", "failed", "cancelled", "lost", "lease_expired"];

/// The alerts without a hold time that fire in this test.
const FIRED: &[&str] = &["BellwetherJobsDead", "BellwetherWorkerLost", "BellwetherSessionExpired"];

#[tokio::test(flavor = "multi_thread")]
async fn every_panel_of_every_dashboard_shows_data_of_nodes_under_faults() {
    command().unwrap(); // Builds the command if necessary.
    let began = Instant::now();
    let (to, logs) = (namespace("dashboards"), tempfile::tempdir().unwrap());
    let (proxy, log) = (Proxy::to(&to), |name: &str| logs.path().join(name));
    let client = Client::connect(&to).await.unwrap();
    let mut leader = Node::start("first", "candidate,worker", &to, log("first"));
    led_by(leader.name(), &client).await;
    // This node runs no jobs, so it learns of kinds only as the leader.
    let next = Node::start("next", "candidate,gateway", &to, log("next"));
    let asked = tokio::spawn(ask(next.http));
    let mut worker = Node::start("worker", "worker", &proxy.connect_string(), log("worker"));
    let prometheus = Prometheus::start(&[leader.metrics, next.metrics, worker.metrics]).await;
    until(&prometheus, "both workers are registered", "max(bellwether_workers) == 2").await;

    let mut load = Load { client: client.clone(), jobs: Vec::new() };
    load.more(20).await;
    load.unusual().await;
    until(
        &prometheus,
        "a lease expired",
        "max(bellwether_job_attempts_total{outcome=\"lease_expired\"}) > 0",
    )
    .await;
    let cancelled = load.submit(Job::new("sleep", &json!({ "millis": 600_000 }))).await;
    eventually("the job runs", SOON, async || load.state(&cancelled).await == State::Running).await;
    client.cancel(&cancelled).await.unwrap();

    let lost = proxy.swallow_reply_and_cut(by_a_worker, Cut::Reset);
    load.more(20).await;
    lost.fired().await;
    until(&prometheus, "the lost reply is resolved", "max(bellwether_unknown_outcomes_resolved_total) > 0")
        .await;
    until(&prometheus, "the worker is connected again", "min(bellwether_session_connected) == 1").await;
    proxy.expire_session().await;
    until(&prometheus, "the session expired", "max(bellwether_sessions_expired_total) > 0").await;
    until(&prometheus, "the worker is registered again", "max(bellwether_workers) == 2").await;

    load.more(20).await;
    leader.kill();
    led_by(next.name(), &client).await;
    leader.again();
    until(&prometheus, "it works again", "max(bellwether_workers) == 2 and on () min(up) == 1").await;
    let of_next = format!("bellwether_jobs_dead_total{{instance=\"{}\", kind=\"sum\"}} == 0", next.metrics);
    until(&prometheus, "a leader shows kinds that it has not counted yet", &of_next).await;

    load.more(20).await;
    let of_worker = format!("bellwether_job_attempts_running{{instance=\"{}\"}} > 0", worker.metrics);
    until(&prometheus, "the worker runs a job", &of_worker).await;
    worker.kill();
    let lost = format!("max(bellwether_workers_lost_total{{instance=\"{}\"}}) > 0", next.metrics);
    until(&prometheus, "the worker is lost", &lost).await;
    worker.again();

    load.more(20).await;
    leader.drain().await;
    leader.again();
    until(&prometheus, "it works again", "max(bellwether_workers) == 2 and on () min(up) == 1").await;
    load.over().await;

    for name in MOVED {
        let metric = metric::ALL.iter().find(|metric| metric.name == *name).unwrap();
        let series = match metric.kind {
            MetricType::Counter | MetricType::Gauge => metric.name.to_owned(),
            MetricType::Histogram => format!("{}_count", metric.name),
        };
        until(&prometheus, name, &format!("max(max_over_time({series}[1h])) > 0")).await;
    }
    for outcome in OUTCOMES {
        let attempts = format!("bellwether_job_attempts_total{{outcome=\"{outcome}\"}}");
        until(&prometheus, outcome, &format!("max(max_over_time({attempts}[1h])) > 0")).await;
    }
    for name in FIRED {
        let fired = format!("count_over_time(ALERTS{{alertname=\"{name}\",alertstate=\"firing\"}}[1h])");
        until(&prometheus, name, &fired).await;
    }
    let twice = "count_over_time(ALERTS{alertname=\"BellwetherTwoLeaders\",alertstate=\"firing\"}[1h])";
    assert_eq!(prometheus.largest(twice), None, "two leaders");
    assert_eq!(prometheus.ailing_rules(), Vec::<serde_json::Value>::new());
    let tried = every_expression(&prometheus).await;
    asked.abort();
    println!("{tried} expressions returned data; {:.1} s", began.elapsed().as_secs_f64());
}

/// Sends requests to a gateway repeatedly, so its metrics change.
async fn ask(gateway: SocketAddr) {
    loop {
        if let Ok(mut stream) = TcpStream::connect(gateway).await {
            let request = format!("GET /v1/leader HTTP/1.1\r\nHost: {gateway}\r\nConnection: close\r\n\r\n");
            let mut answer = Vec::new();
            // A failed request is not counted; the test waits for successful ones.
            if stream.write_all(request.as_bytes()).await.is_ok() {
                drop(stream.read_to_end(&mut answer).await);
            }
        }
        sleep(BETWEEN_REQUESTS).await;
    }
}

/// Checks that every line of every panel has a point and every variable a value. Returns the number of lines.
async fn every_expression(prometheus: &Prometheus) -> usize {
    let mut tried = 0;
    for board in boards::all() {
        for (name, query) in grafana::queries(board.scope) {
            let call = query.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')')).unwrap();
            let (metric, label) = call.rsplit_once(", ").unwrap();
            let values = prometheus.label_values(label, &chosen(metric));
            assert!(!values.is_empty(), "{}: {query} returns no value for {name}", board.title);
        }
        for panel in board.rows.iter().flat_map(|row| &row.panels) {
            for line in &panel.lines {
                let expr = chosen(&grafana::expression(board.scope, &line.expr));
                assert!(is_scoped(&expr), "{}: {expr}", panel.question);
                let what = format!("{}: {}\n  {expr}", board.title, panel.question);
                eventually(&what, SOON, async || prometheus.points(&expr) > 0).await;
                tried += 1;
            }
        }
    }
    tried
}

/// Replaces Grafana's variables in an expression.
fn chosen(expr: &str) -> String {
    expr.replace("$__rate_interval", RATE_INTERVAL)
        .replace("$job", "bellwether")
        .replace("$kind", ".*")
        .replace("$instance", ".*")
}

/// Whether the expression contains no variables and each metric is limited to one namespace.
fn is_scoped(expr: &str) -> bool {
    !expr.contains('$') && promql::names(expr).len() == expr.matches("job=\"bellwether\"").count()
}

async fn until(prometheus: &Prometheus, what: &str, expr: &str) {
    eventually(&format!("{what}: {expr}"), SOON, async || prometheus.largest(expr).is_some()).await;
}

async fn led_by(node: &str, client: &Client) {
    eventually(&format!("{node} is the leader"), SOON, async || {
        let leader = client.leader().await.unwrap();
        leader.is_some_and(|leader| leader.standing && leader.node.as_str() == node)
    })
    .await;
}

/// Whether a request is a transaction in which a worker closes an attempt.
fn by_a_worker(request: &Request<'_>) -> bool {
    request.op == op::MULTI
        && ["/jobs/", "/assignments/"].iter().all(|path| request.mentions(path))
        && !request.mentions("/epoch")
}

/// Submits jobs of many types.
struct Load {
    client: Client,
    jobs: Vec<JobId>,
}

impl Load {
    async fn submit(&self, job: Job) -> JobId {
        self.client.submit(job).await.unwrap().id().clone()
    }

    /// Submits this many jobs of each type: jobs that succeed, run for a while, fail once, or become dead.
    async fn more(&mut self, of_each: usize) {
        for n in 0..of_each {
            let types = [
                Job::new("sum", &json!([n, 1])),
                Job::new("sleep", &json!({ "millis": 200 })).max_losses(100),
                Job::new("fail", &json!({ "message": "once", "times": 1 }))
                    .backoff(Duration::from_millis(500), Duration::from_secs(1)),
                Job::new("fail", &json!({ "message": "always" })).max_attempts(1),
            ];
            for job in types {
                let id = self.submit(job).await;
                self.jobs.push(id);
            }
        }
    }

    /// Submits a job that exceeds its lease, creates a group that is never sealed, and adds a schedule whose jobs run
    /// longer than its interval.
    async fn unusual(&mut self) {
        let sleep = |millis: u32| Job::new("sleep", &json!({ "millis": millis }));
        let overdue = sleep(60_000).lease(Duration::from_secs(1)).auto_renew(false);
        self.jobs.push(self.submit(overdue).await);
        let group = self.client.group(Group::new("sleep", "open")).await.unwrap();
        self.jobs.push(group.submit(0, sleep(10)).await.unwrap().id().clone());
        let beat = Schedule::every("beat", Duration::from_secs(1), sleep(2_500)).overlap(Overlap::Forbid);
        self.client.schedules().add(&beat).await.unwrap();
    }

    async fn state(&self, id: &JobId) -> State {
        self.client.get(id).await.unwrap().unwrap().state
    }

    /// Waits until all jobs have ended.
    async fn over(&self) {
        let answers = self.client.wait_many(&self.jobs, 2 * SOON, |_| {}).await;
        for answer in answers {
            let job = answer.unwrap();
            assert!(matches!(job.state, State::Succeeded | State::Dead), "{}: {}", job.id, job.status());
        }
    }
}

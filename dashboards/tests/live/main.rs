//! Every expression of every dashboard, on a real Prometheus that scrapes three nodes in trouble.
//!
//! The nodes are processes under load. A reply is lost, a session expires, the leader and a worker are killed, a worker
//! drains; jobs fail, die and are cancelled. What the dashboards ask must have answers then, and the metrics that tell of
//! such things must have told of them. Needs Debian's `prometheus`; no Grafana.
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
/// Of those who ask the gateway.
const BETWEEN_REQUESTS: Duration = Duration::from_millis(200);
/// What Grafana would make of it at these scrapes.
const RATE_INTERVAL: &str = "5s";

/// What this test brings about, and the metrics tell of. Not what a worker hands back at the end of its drain: it ends
/// before it is scraped again.
const MOVED: &[&str] = &[
    metric::JOBS_ASSIGNED,
    metric::JOBS_COMPLETED,
    metric::JOBS_FAILED,
    metric::JOBS_DEAD,
    metric::JOBS_CANCELLED,
    metric::JOBS_LOST,
    metric::ATTEMPTS_RUNNING,
    metric::QUEUE_DEPTH,
    metric::DELAYED,
    metric::WORKERS,
    metric::SLOTS,
    metric::SLOTS_USED,
    metric::ASSIGN_SECONDS,
    metric::RUN_SECONDS,
    metric::END_TO_END_SECONDS,
    metric::ORPHANS,
    metric::LEADERSHIP_STATE,
    metric::LEADERSHIP_TRANSITIONS,
    metric::EPOCH,
    metric::SESSION_CONNECTED,
    metric::SESSION_GENERATIONS,
    metric::SESSION_RECONNECTS,
    metric::SESSION_EXPIRED,
    metric::SESSION_MARGIN,
    metric::SESSION_TIMEOUT,
    metric::ROUND_TRIP_SECONDS,
    metric::ZK_REQUESTS,
    metric::ZK_OPERATIONS,
    metric::ZK_REQUEST_SECONDS,
    metric::UNKNOWN_OUTCOMES,
    metric::UNKNOWN_RESOLVED,
    metric::WORKERS_LOST,
    metric::LEASES_EXPIRED,
    metric::GROUPS,
    metric::SCHEDULES,
    metric::TICKS,
    metric::TICKS_PASSED_OVER,
    metric::HTTP_REQUESTS,
    metric::HTTP_SECONDS,
];

/// The alerts without a hold that this test brings about.
const FIRED: &[&str] = &["BellwetherJobsDead", "BellwetherWorkerLost", "BellwetherSessionExpired"];

#[tokio::test(flavor = "multi_thread")]
async fn every_panel_of_every_dashboard_shows_data_of_nodes_in_trouble() {
    command().unwrap(); // Built now, if nobody has.
    let began = Instant::now();
    let (to, logs) = (namespace("dashboards"), tempfile::tempdir().unwrap());
    let (proxy, log) = (Proxy::to(&to), |name: &str| logs.path().join(name));
    let client = Client::connect(&to).await.unwrap();
    let mut leader = Node::start("first", "candidate,worker", &to, log("first"));
    led_by(leader.name(), &client).await;
    // Works nothing off: what it knows of kinds it knows as a leader.
    let next = Node::start("next", "candidate,gateway", &to, log("next"));
    let asked = tokio::spawn(ask(next.http));
    let mut worker = Node::start("worker", "worker", &proxy.connect_string(), log("worker"));
    let prometheus = Prometheus::start(&[leader.metrics, next.metrics, worker.metrics]).await;
    until(&prometheus, "both work", "max(bellwether_workers) == 2").await;

    let mut load = Load { client: client.clone(), jobs: Vec::new() };
    load.more(20).await;
    load.unusual().await;
    until(&prometheus, "a lease expired", "max(bellwether_leases_expired_total) > 0").await;
    let cancelled = load.submit(Job::new("sleep", &json!({ "millis": 600_000 })).unwrap()).await;
    eventually("it runs", SOON, async || load.state(&cancelled).await == State::Running).await;
    client.cancel(&cancelled).await.unwrap();

    let lost = proxy.swallow_reply_and_cut(by_a_worker, Cut::Reset);
    load.more(20).await;
    lost.fired().await;
    until(&prometheus, "it was resolved", "max(bellwether_unknown_outcomes_resolved_total) > 0").await;
    until(&prometheus, "it is back", "min(bellwether_session_connected) == 1").await;
    proxy.expire_session().await;
    until(&prometheus, "it expired", "max(bellwether_session_expired_total) > 0").await;
    until(&prometheus, "it is a worker again", "max(bellwether_workers) == 2").await;

    load.more(20).await;
    leader.kill();
    led_by(next.name(), &client).await;
    leader.again();
    until(&prometheus, "it works again", "max(bellwether_workers) == 2 and on () min(up) == 1").await;
    let of_next = format!("bellwether_jobs_dead_total{{instance=\"{}\", kind=\"sum\"}} == 0", next.metrics);
    until(&prometheus, "a leader shows kinds of which it counted nothing yet", &of_next).await;

    load.more(20).await;
    let of_worker = format!("bellwether_attempts_running{{instance=\"{}\"}} > 0", worker.metrics);
    until(&prometheus, "the victim runs something", &of_worker).await;
    worker.kill();
    let lost = format!("max(bellwether_workers_lost_total{{instance=\"{}\"}}) > 0", next.metrics);
    until(&prometheus, "it was missed", &lost).await;
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

/// Asks a gateway again and again who leads, so that there is always something to tell of it.
async fn ask(gateway: SocketAddr) {
    loop {
        if let Ok(mut stream) = TcpStream::connect(gateway).await {
            let request = format!("GET /v1/leader HTTP/1.1\r\nHost: {gateway}\r\nConnection: close\r\n\r\n");
            let mut answer = Vec::new();
            // One that is not answered is not counted, and the test waits for those that are.
            if stream.write_all(request.as_bytes()).await.is_ok() {
                drop(stream.read_to_end(&mut answer).await);
            }
        }
        sleep(BETWEEN_REQUESTS).await;
    }
}

/// Every line of every panel has a point, and every variable a value.
async fn every_expression(prometheus: &Prometheus) -> usize {
    let mut tried = 0;
    for board in boards::all() {
        for (name, query) in grafana::queries(board.scope) {
            let call = query.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')')).unwrap();
            let (metric, label) = call.rsplit_once(", ").unwrap();
            let values = prometheus.label_values(label, &chosen(metric));
            assert!(!values.is_empty(), "{}: nothing to choose for {name} by {query}", board.title);
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

/// With what Grafana puts into an expression.
fn chosen(expr: &str) -> String {
    expr.replace("$__rate_interval", RATE_INTERVAL)
        .replace("$job", "bellwether")
        .replace("$kind", ".*")
        .replace("$instance", ".*")
}

/// Nothing is left to choose, and each metric is of one namespace.
fn is_scoped(expr: &str) -> bool {
    !expr.contains('$') && promql::names(expr).len() == expr.matches("job=\"bellwether\"").count()
}

async fn until(prometheus: &Prometheus, what: &str, expr: &str) {
    eventually(&format!("{what}: {expr}"), SOON, async || prometheus.largest(expr).is_some()).await;
}

async fn led_by(node: &str, client: &Client) {
    eventually(&format!("{node} leads"), SOON, async || {
        let leader = client.leader().await.unwrap();
        leader.is_some_and(|leader| leader.standing && leader.node.as_str() == node)
    })
    .await;
}

/// A transaction that closes an attempt, and not by the leader.
fn by_a_worker(request: &Request<'_>) -> bool {
    request.op == op::MULTI
        && ["/jobs/", "/assignments/"].iter().all(|path| request.mentions(path))
        && !request.mentions("/epoch")
}

/// Jobs of all sorts.
struct Load {
    client: Client,
    jobs: Vec<JobId>,
}

impl Load {
    async fn submit(&self, job: Job) -> JobId {
        self.client.submit(job).await.unwrap().id().clone()
    }

    /// So many of each sort: some that succeed, some that take a while, some that fail first, some that die.
    async fn more(&mut self, of_each: usize) {
        for n in 0..of_each {
            let sorts = [
                Job::new("sum", &json!([n, 1])).unwrap(),
                Job::new("sleep", &json!({ "millis": 200 })).unwrap().max_losses(100),
                Job::new("fail", &json!({ "message": "once", "times": 1 }))
                    .unwrap()
                    .backoff(Duration::from_millis(500), Duration::from_secs(1)),
                Job::new("fail", &json!({ "message": "always" })).unwrap().max_attempts(1),
            ];
            for job in sorts {
                let id = self.submit(job).await;
                self.jobs.push(id);
            }
        }
    }

    /// One that outlives its lease, a group that nobody seals, and a schedule whose jobs take longer than its interval.
    async fn unusual(&mut self) {
        let sleep = |millis: u32| Job::new("sleep", &json!({ "millis": millis })).unwrap();
        let overdue = sleep(60_000).lease(Duration::from_secs(1)).renew_lease_automatically(false);
        self.jobs.push(self.submit(overdue).await);
        let group = self.client.group(Group::new("sleep", "open").unwrap()).await.unwrap();
        self.jobs.push(group.submit(0, sleep(10)).await.unwrap().id().clone());
        let beat = Schedule::every("beat", Duration::from_secs(1), sleep(2_500)).overlap(Overlap::Forbid);
        self.client.schedules().add(&beat).await.unwrap();
    }

    async fn state(&self, id: &JobId) -> State {
        self.client.get(id).await.unwrap().unwrap().state
    }

    /// Waits until all are over, and says so of each.
    async fn over(&self) {
        let answers = self.client.wait_many(&self.jobs, 2 * SOON, |_| {}).await;
        for answer in answers {
            let job = answer.unwrap();
            assert!(matches!(job.state, State::Succeeded | State::Dead), "{}: {}", job.id, job.status());
        }
    }
}

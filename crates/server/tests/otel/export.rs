//! The exported spans and their relations.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use bellwether::schedule::tick_id;
use bellwether::{Client, Job, JobId, Schedule, ScheduleId, State};
use bellwether_server::otel::FLUSH;
use bellwether_testkit::{Cut, Fault, Proxy, Request, eventually, eventually_some, op};

use crate::collector::{Collector, Span};
use crate::process::{SOON, command, end, namespace, node, run};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// Waits for this number of spans of this job and name, and returns them by attempt.
async fn spans(collector: &Collector, job: &str, name: &str, count: usize) -> Vec<Span> {
    let what = format!("{count} spans {name} of {job}");
    let mut spans = eventually_some(&what, SOON, async || {
        let spans = collector.of(job, name);
        (spans.len() >= count).then_some(spans)
    })
    .await;
    spans.sort_by_key(|span| span.fields.get("attempt").cloned());
    assert_eq!(spans.len(), count, "{spans:?}");
    spans
}

fn id(job: &str) -> JobId {
    JobId::new(job).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_with_a_killed_worker_is_one_trace_from_submission_to_second_run() {
    let collector = Collector::start().await;
    let endpoint = &collector.endpoint();
    let to = &namespace("otel-kill");
    let client = Client::connect(to).await.unwrap();
    let leader = node(to, endpoint, "leader", "candidate");
    let mut first = node(to, endpoint, "first", "worker");
    let sleep = ["job", "submit", "sleep", r#"{"millis": 2000}"#, "--id", "a", "--traceparent", TRACEPARENT];
    run(&mut command(to, endpoint, &sleep));
    let view = async || client.get(&id("a")).await.unwrap().unwrap();
    eventually("the job runs", SOON, async || view().await.state == State::Running).await;
    first.kill();
    let second = node(to, endpoint, "second", "worker");
    let over = client.wait(&id("a"), SOON).await.unwrap();
    assert_eq!((over.state, over.attempt, over.losses), (State::Succeeded, 2, 1), "{over:?}");

    let submit = spans(&collector, "a", "submit", 1).await.remove(0);
    assert_eq!((submit.trace.as_str(), submit.parent.as_str()), (TRACE, "00f067aa0ba902b7"));
    assert_eq!((submit.field("kind"), submit.field("outcome")), ("sleep", "accepted"));
    let stored = over.traceparent.unwrap().to_string();
    assert_eq!(stored, format!("00-{TRACE}-{}-01", submit.id), "later spans are children of the submission");

    let assigns = spans(&collector, "a", "assign", 2).await;
    // The span of the killed worker was lost with it.
    let runs = spans(&collector, "a", "run", 1).await;
    let reports = spans(&collector, "a", "report", 1).await;
    for span in assigns.iter().chain(&runs).chain(&reports) {
        assert_eq!((&span.trace, &span.parent), (&submit.trace, &submit.id), "{span:?}");
        assert_eq!((span.field("job"), span.field("kind")), ("a", "sleep"));
        assert_eq!(span.resource["service.name"], "bellwether");
    }
    for (span, attempt) in assigns.iter().zip(["1", "2"]) {
        assert_eq!((span.field("attempt"), span.field("outcome")), (attempt, "applied"));
        assert_eq!(span.resource["service.instance.id"], "leader");
    }
    assert_ne!(assigns[0].field("worker"), assigns[1].field("worker"));
    assert_eq!((runs[0].field("attempt"), runs[0].field("outcome")), ("2", "succeeded"));
    assert_eq!(runs[0].field("epoch"), assigns[1].field("epoch"));
    assert_eq!(runs[0].resource["service.instance.id"], "second");
    assert_eq!((reports[0].field("ending"), reports[0].field("outcome")), ("succeeded", "closed"));
    assert_eq!((end(second).await.0, end(leader).await.0), (Some(0), Some(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_begins_a_trace_and_a_failed_attempt_is_an_error_in_it() {
    let collector = Collector::start().await;
    let endpoint = &collector.endpoint();
    let to = &namespace("otel-fail");
    let client = Client::connect(to).await.unwrap();
    let node = node(to, endpoint, "all", "candidate,worker");
    let fail = ["job", "submit", "fail", r#"{"message": "no luck", "times": 1}"#, "--id", "b"];
    run(&mut command(to, endpoint, &fail));
    assert_eq!(client.wait(&id("b"), SOON).await.unwrap().state, State::Succeeded);
    let submit = spans(&collector, "b", "submit", 1).await.remove(0);
    assert_eq!(submit.parent, "");
    let runs = spans(&collector, "b", "run", 2).await;
    let seen = runs.iter().map(|span| (span.field("outcome"), span.error.as_deref()));
    assert_eq!(seen.collect::<Vec<_>>(), [("failed", Some("no luck")), ("succeeded", None)]);
    assert!(runs.iter().all(|run| (&run.trace, &run.parent) == (&submit.trace, &submit.id)), "{runs:?}");

    let sum = ["job", "submit", "sum", r#"{"first": 1, "second": 2}"#, "--id", "c"];
    run(command(to, endpoint, &sum).env("OTEL_TRACES_SAMPLER", "always_off"));
    let over = client.wait(&id("c"), SOON).await.unwrap();
    assert!(!over.traceparent.unwrap().is_sampled());
    // The queued spans are sent when the process ends.
    assert_eq!(end(node).await.0, Some(0));
    assert!(collector.of("c", "run").is_empty(), "the worker respects the sampling decision");
}

fn tick(request: &Request<'_>) -> bool {
    request.op == op::MULTI && request.mentions("/schedules/beat")
}

/// S8: one of the transactions is applied, and its span is the one in the record.
#[tokio::test(flavor = "multi_thread")]
async fn each_tick_of_a_schedule_begins_a_trace_in_the_leader_also_with_a_lost_reply() {
    let collector = Collector::start().await;
    let endpoint = &collector.endpoint();
    let to = &namespace("otel-tick");
    let client = Client::connect(to).await.unwrap();
    let proxy = Proxy::to(to);
    let leader = node(&proxy.connect_string(), endpoint, "leader", "candidate");
    let worker = node(to, endpoint, "worker", "worker");
    let sum = Job::new("sum", &serde_json::json!({"first": 1, "second": 2}));
    let beat = Schedule::every("beat", Duration::from_secs(1), sum);
    client.schedules().add(&beat).await.unwrap();
    let first = eventually_some("a tick", SOON, async || collector.of_schedule("beat").into_iter().next());
    let first = first.await;
    assert_eq!((first.parent.as_str(), first.field("kind")), ("", "sum"));
    assert_eq!(first.field("outcome"), "accepted");
    assert_eq!(first.resource["service.instance.id"], "leader");
    let job = first.field("job").to_owned();
    let over = client.wait(&id(&job), SOON).await.unwrap();
    assert_eq!(over.traceparent.unwrap().to_string(), format!("00-{}-{}-01", first.trace, first.id));
    for (name, of) in [("assign", "leader"), ("run", "worker"), ("report", "worker")] {
        let span = spans(&collector, &job, name, 1).await.remove(0);
        assert_eq!((&span.trace, &span.parent), (&first.trace, &first.id), "{span:?}");
        assert_eq!(span.resource["service.instance.id"], of);
    }

    // Applied in the first case, not applied in the second.
    let losses: [fn(&Proxy) -> Fault; 2] = [
        |proxy| proxy.swallow_reply_and_cut(tick, Cut::Reset),
        |proxy| proxy.drop_request_and_cut(tick, Cut::Reset),
    ];
    for (before, lose) in losses.into_iter().enumerate() {
        lose(&proxy).fired().await;
        let unknown = eventually_some("the outcome of a tick is unknown", SOON, async || {
            let mut unknown = collector.of_schedule("beat");
            unknown.retain(|span| span.field("outcome") == "unknown");
            (unknown.len() > before).then(|| unknown.remove(before))
        });
        let unknown = unknown.await;
        let job = unknown.field("job");
        let made =
            eventually_some("the job of the tick exists", SOON, async || client.get(&id(job)).await.unwrap());
        let named = made.await.traceparent.unwrap().to_string();
        let named = eventually_some("the record names a span of this job", SOON, async || {
            let mut tried = collector.of(job, "submit").into_iter();
            tried.find(|span| named == format!("00-{}-{}-01", span.trace, span.id))
        });
        assert_eq!(
            named.await.id == unknown.id,
            before == 0,
            "the record names the span of the applied transaction"
        );
    }
    assert_eq!((end(worker).await.0, end(leader).await.0), (Some(0), Some(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tick_has_no_trace_if_the_leader_has_no_collector() {
    let to = &namespace("otel-tick-none");
    let client = Client::connect(to).await.unwrap();
    let node = node(to, "", "all", "candidate,worker");
    let sum = Job::new("sum", &serde_json::json!({"first": 1, "second": 2}));
    client.schedules().add(&Schedule::every("beat", Duration::from_secs(1), sum)).await.unwrap();
    let beat = ScheduleId::new("beat").unwrap();
    let last = eventually_some("the schedule ticks", SOON, async || {
        client.schedules().get(&beat).await.unwrap().record.unwrap().last_tick
    });
    let job = tick_id(&beat, last.await);
    assert_eq!(client.wait(&job, SOON).await.unwrap().traceparent, None);
    assert_eq!(end(node).await.0, Some(0));
}

/// Jobs do not wait for a collector, and the end of a node waits at most [`FLUSH`].
#[tokio::test(flavor = "multi_thread")]
async fn an_absent_or_silent_collector_neither_slows_nor_stops_a_node() {
    // Its backlog accepts connections, but no process reads from them.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (name, address) in [("otel-silent", silent.local_addr().unwrap()), ("otel-gone", gone)] {
        let endpoint = &format!("http://{address}");
        let to = &namespace(name);
        let client = Client::connect(to).await.unwrap();
        let node = node(to, endpoint, "all", "candidate,worker");
        let began = Instant::now();
        // More than the span queue holds.
        let many = ["job", "submit", "sum", r#"{"first": 1, "second": 2}"#, "--id", "s", "--count", "3000"];
        run(&mut command(to, endpoint, &many));
        let over = (1..=3000).map(|n| id(&format!("s-{n}"))).collect::<Vec<_>>();
        let ended = client.wait_many(&over, SOON, |_| {}).await;
        assert!(ended.iter().all(|end| end.as_ref().is_ok_and(|job| job.state == State::Succeeded)));
        println!("{name}: 3,000 jobs in {:?}", began.elapsed());
        let began = Instant::now();
        let (code, said) = end(node).await;
        assert_eq!(code, Some(0), "{said}");
        println!("{name}: the node ended in {:?}", began.elapsed());
        assert!(began.elapsed() < 4 * FLUSH, "{:?}", began.elapsed());
        let told = said.matches("the collector does not take spans: they may be lost").count();
        assert!(told <= 1 && (name != "otel-gone" || told == 1), "{told} times: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_option_overrides_the_traces_variable_which_overrides_the_general_one() {
    const OF_TRACES: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
    let (all, traces, own) = (Collector::start().await, Collector::start().await, Collector::start().await);
    let to = &namespace("otel-endpoint");
    // Creates the namespace.
    let client = Client::connect(to).await.unwrap();
    let submit = |job: &str, options: &[&str]| {
        command(to, &all.endpoint(), &[&["job", "submit", "sum", "--id", job], options].concat())
    };
    let whole = format!("{}/v1/traces", traces.endpoint());
    run(&mut submit("a", &[]));
    run(submit("b", &[]).env(OF_TRACES, &whole));
    run(submit("c", &["--otlp-endpoint", &own.endpoint()]).env(OF_TRACES, &whole));
    run(submit("d", &[]).env("OTEL_SDK_DISABLED", "true"));
    run(submit("e", &[]).env("OTEL_EXPORTER_OTLP_ENDPOINT", ""));
    for (job, heard) in [("a", [1, 0, 0]), ("b", [0, 1, 0]), ("c", [0, 0, 1]), ("d", [0; 3]), ("e", [0; 3])] {
        // A command sends its spans before it ends.
        assert_eq!([&all, &traces, &own].map(|of| of.of(job, "submit").len()), heard, "{job}");
        let traced = client.get(&id(job)).await.unwrap().unwrap().traceparent.is_some();
        assert_eq!(traced, heard != [0; 3], "{job}");
    }
}

#[test]
fn an_unsupported_endpoint_is_refused_with_its_source_before_anything_is_done() {
    for wrong in ["https://a:1", "a:4317", "http://", "http:///x"] {
        let said = |mut command: std::process::Command| {
            let refused = command.output().unwrap();
            let said = String::from_utf8(refused.stderr).unwrap();
            assert_eq!(refused.status.code(), Some(2), "{said}");
            said
        };
        let way_out = format!("is {wrong:?}: give http://HOST:PORT of a collector");
        let by_variable = said(command("127.0.0.1:1/x", wrong, &["job", "list"]));
        assert!(by_variable.contains(&format!("OTEL_EXPORTER_OTLP_ENDPOINT {way_out}")), "{by_variable}");
        let by_option = said(command("127.0.0.1:1/x", "", &["job", "list", "--otlp-endpoint", wrong]));
        assert!(by_option.contains(&format!("otlp_endpoint {way_out}")), "{by_option}");
    }
}

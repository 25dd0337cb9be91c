//! The reports as tables.

use bellwether_bench::http::{HttpReport, RemoteShape};
use bellwether_bench::scenario::Part;
use bellwether_bench::sustained::SustainedReport;
use bellwether_bench::{BenchReport, Floors, Held, Usage};

fn row(name: &str, value: String, what: &str) -> [String; 3] {
    [name.to_owned(), value, what.to_owned()]
}

pub(super) fn rows(report: &BenchReport) -> Vec<[String; 3]> {
    let jobs = format!("{} jobs, {} workers of {} slots", report.jobs, report.workers, report.slots);
    let (before, after) = (&report.floors_before, &report.floors_after);
    let floor = |of: fn(&Floors) -> f64| format!("{:.0}, {:.0} jobs/s", of(before), of(after));
    let mut rows = vec![
        row(
            "floor",
            floor(|floors| floors.plain),
            "bare requests, a znode per job; before and after the load",
        ),
        row("packed floor", floor(|floors| floors.packed), "the same, a znode per 100 jobs"),
        row("bellwether", format!("{:.0} jobs/s", report.jobs_per_second), &jobs),
        row("ratio", format!("{:.2}", report.ratios.plain), "bellwether / floor"),
        row("packed ratio", format!("{:.2}", report.ratios.packed), "bellwether / packed floor"),
        row("transactions", format!("{:.3} per job", report.transactions_per_job), "multis of all processes"),
        row(
            "requests",
            format!("{:.3} per job", report.requests_per_job),
            "reads and writes of all processes",
        ),
        row(
            "operations",
            format!("{:.1} per job", report.operations_per_job),
            "znode reads and writes in these requests",
        ),
        cpu(&report.cpu_us_per_job),
        row(
            "idle p50",
            format!("{:.2} ms", report.idle_p50_ms),
            "submit until result is read, one at a time",
        ),
        row("idle p99", format!("{:.2} ms", report.idle_p99_ms), ""),
        row(
            "idle requests",
            format!("{:.1} per job", report.idle_requests_per_job),
            "reads and writes of all processes, also heartbeats and beats",
        ),
        row("three writes p50", format!("{:.2} ms", report.three_writes_p50_ms), "bare writes, in sequence"),
        row("read p50", format!("{:.2} ms", report.read_p50_ms), "a bare read; a single job needs two"),
        row("idle ratio", format!("{:.2}", report.idle_ratio), "idle p50 / three writes p50"),
    ];
    if let Some(memory) = report.pending_memory {
        let what = format!("resident, leader and worker, {} waiting jobs", memory.jobs);
        rows.push(row("memory", format!("{:.0} bytes per job", memory.bytes_per_job), &what));
    }
    rows
}

/// Processor time by process.
fn cpu(usage: &Usage<f64>) -> [String; 3] {
    let Usage { client, leader, workers, server } = usage;
    let server = server.map_or_else(|| "server unknown".to_owned(), |server| format!("server {server:.0}"));
    let what = format!("client {client:.0}, leader {leader:.0}, workers {workers:.0}; {server}");
    row("processor time", format!("{:.0} µs per job", usage.product()), &what)
}

pub(super) fn sustained_rows(report: &SustainedReport) -> Vec<[String; 3]> {
    let single = format!("{} jobs of priority 9, one at a time next to the load", report.single_jobs);
    let tenths = report.tenths.iter().map(|rate| format!("{rate:.0}")).collect::<Vec<_>>().join(" ");
    let memory = |what: &str, usage: &Usage<u64>, held: &Held| {
        let mib = |bytes: u64| (bytes >> 20).to_string();
        let server = usage.server.map_or_else(|| "unknown".to_owned(), mib);
        let [client, leader, workers] = [usage.client, usage.leader, usage.workers].map(mib);
        let count =
            |count: Option<u64>| count.map_or_else(|| "unknown".to_owned(), |count| count.to_string());
        let (znodes, bytes) = (count(held.znodes), held.data_bytes.map(|bytes| bytes >> 20));
        row(
            what,
            format!("MiB: client {client}, leader {leader}, workers {workers}, server {server}"),
            &format!("resident; the server holds {znodes} znodes, {} MiB of data", count(bytes)),
        )
    };
    vec![
        row("short run", format!("{:.0} jobs/s", report.short_jobs_per_second), "jobs submitted at once"),
        row(
            "sustained",
            format!("{:.0} jobs/s", report.jobs_per_second),
            &format!("{} jobs in {:.0} s", report.jobs, report.seconds),
        ),
        row("ratio", format!("{:.2}", report.ratio), "sustained / short run"),
        row("refusals", report.refusals.to_string(), "submissions to a full namespace, each repeated"),
        row("by tenths", tenths, "jobs/s in each tenth of the time"),
        row("p50, p99", format!("{:.1} ms, {:.1} ms", report.p50_ms, report.p99_ms), &single),
        cpu(&report.cpu_us_per_job),
        memory("before", &report.bytes_before, &report.held_before),
        memory("halfway", &report.bytes_halfway, &report.held_halfway),
        memory("after", &report.bytes_after, &report.held_after),
    ]
}

pub(super) fn http_rows(report: &HttpReport) -> Vec<[String; 3]> {
    let HttpReport { jobs, callers, native, http, ratio, remote, streams } = report;
    let what = format!("{jobs} jobs each from {callers} callers, one at a time per caller");
    let (connected, before) = (streams.streams, streams.bytes_before / (1024 * 1024));
    let connected = format!("resident, for each of {connected} event streams; {before} MiB without streams");
    let mut rows = vec![
        row("native", format!("{:.0} jobs/s", native.jobs_per_second), &what),
        row("native p50, p99", format!("{:.2} ms, {:.2} ms", native.p50_ms, native.p99_ms), ""),
        row("HTTP", format!("{:.0} jobs/s", http.jobs_per_second), "the same over HTTP with keep-alive"),
        row("HTTP p50, p99", format!("{:.2} ms, {:.2} ms", http.p50_ms, http.p99_ms), ""),
        row("ratio", format!("{ratio:.2}"), "HTTP / native"),
        row("stream", format!("{:.0} bytes", streams.bytes_per_stream), &connected),
        row("stream after an event", format!("{:.0} bytes", streams.bytes_per_stream_after_events), ""),
        row("last event", format!("{:.0} ms", streams.last_event_ms), "from submission to the last stream"),
    ];
    rows.extend(remote.shapes.iter().flat_map(|shape| remote_rows(remote.jobs, shape)));
    rows
}

fn remote_rows(jobs: usize, shape: &RemoteShape) -> [[String; 3]; 3] {
    let RemoteShape { workers, slots, in_process, remote, ratio } = shape;
    let row =
        |name: &str, value: String, what: String| [format!("{name}, {workers} × {slots} slots"), value, what];
    let cpu = in_process.cpu_us_per_job;
    let (all, gateway) = (remote.cpu_us_per_job, remote.gateway_cpu_us_per_job);
    [
        row(
            "workers",
            format!("{:.0} jobs/s", in_process.jobs_per_second),
            format!(
                "{jobs} jobs, workers in this process; {cpu:.0} µs of processor time per job without the server"
            ),
        ),
        row(
            "remote workers",
            format!("{:.0} jobs/s", remote.jobs_per_second),
            format!(
                "the same through one gateway; {all:.0} µs per job, {gateway:.0} µs of them the gateway's"
            ),
        ),
        row("ratio", format!("{ratio:.2}"), "remote / in this process".to_owned()),
    ]
}

pub(super) fn part(part: &Part) -> [String; 6] {
    const MIB: u64 = 1024 * 1024;
    let (bytes, before) = (part.leader_bytes / MIB, part.leader_bytes_before / MIB);
    [
        part.name.clone(),
        format!("{:.0}", part.jobs_per_second),
        part.jobs.to_string(),
        format!("{:.1}", part.operations_per_job),
        format!("{:.3}", part.requests_per_job),
        format!("{bytes} MiB, {before} before"),
    ]
}

/// How the leader after the part's leader took over.
pub(super) fn takeover(part: &Part) -> Option<String> {
    let takeover = part.takeover?;
    let (name, ms, mib) = (&part.name, takeover.first_run_ms, takeover.leader_bytes >> 20);
    Some(format!(
        "takeover, {name}: {ms:.0} ms from the claim to the first run; the new leader has {mib} MiB"
    ))
}

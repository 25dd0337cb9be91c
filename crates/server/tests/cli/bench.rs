//! `bellwether bench` at its smallest size.

use bellwether_testkit::namespace;

use crate::run::run_in;

#[test]
fn the_http_benchmark_runs_every_job_through_remote_workers() {
    let to = namespace("cli-bench-http");
    let small = ["bench", "http", "--jobs", "100", "--size", "100", "--callers", "2"];
    let report = run_in(&to, &[&small[..], &["--output", "json"]].concat()).exits(0).json();
    let remote = &report["remote"];
    assert_eq!(remote["jobs"], 100, "{report}");
    let shapes = remote["shapes"].as_array().unwrap();
    let slots =
        shapes.iter().map(|shape| shape["workers"].as_u64().unwrap() * shape["slots"].as_u64().unwrap());
    assert_eq!(slots.collect::<Vec<_>>(), [100, 100], "{report}");
    for shape in shapes {
        for side in ["in_process", "remote"] {
            assert!(shape[side]["jobs_per_second"].as_f64().unwrap() > 0.0, "{report}");
        }
        // The kernel counts in steps of 10 ms, so a hundred jobs may count nothing.
        let (all, gateway) = (&shape["remote"]["cpu_us_per_job"], &shape["remote"]["gateway_cpu_us_per_job"]);
        assert!(all.as_f64().unwrap() >= gateway.as_f64().unwrap(), "{report}");
    }
    let table = run_in(&to, &small).exits(0).stdout;
    assert!(table.contains("remote workers, 4 × 25 slots"), "{table}");
}

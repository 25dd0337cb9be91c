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

#[test]
fn the_load_is_compared_with_the_mean_of_the_floors_before_and_after_it() {
    let to = namespace("cli-bench-load");
    let small = ["bench", "--jobs", "300", "--idle-jobs", "10", "--pending", "0", "--output", "json"];
    let report = run_in(&to, &small).exits(0).json();
    let number = |pointer: &str| report.pointer(pointer).unwrap().as_f64().unwrap();
    for floor in ["plain", "packed"] {
        let mean = f64::midpoint(
            number(&format!("/floors_before/{floor}")),
            number(&format!("/floors_after/{floor}")),
        );
        let ratio = number("/jobs_per_second") / mean;
        assert!((number(&format!("/ratios/{floor}")) - ratio).abs() < 1e-9, "{report}");
    }
    assert!(number("/transactions_per_job") < number("/requests_per_job"), "{report}");
    // The test server runs on this machine.
    assert!(report["cpu_us_per_job"]["server"].is_number(), "{report}");
}

#[test]
fn steady_load_reports_every_tenth_of_the_time_and_what_the_server_holds() {
    let to = namespace("cli-bench-sustained");
    let small = ["bench", "sustained", "--jobs", "100", "--duration", "10s", "--output", "json"];
    let report = run_in(&to, &small).exits(0).json();
    assert_eq!(report["tenths"].as_array().unwrap().len(), 10, "{report}");
    assert!(report["jobs"].as_u64().unwrap() > 0 && report["single_jobs"].as_u64().unwrap() > 0, "{report}");
    let znodes = |when: &str| report[when]["znodes"].as_u64().unwrap();
    assert!(znodes("held_before") < znodes("held_after"), "no record is removed within a minute: {report}");
    assert_eq!(report["refusals"], 0, "the namespace has room: {report}");
    assert!(report["bytes_after"]["server"].as_u64().unwrap() > 0, "{report}");
    run_in(&to, &["bench", "sustained", "--duration", "9s"]).exits(2).says("10s to 1d");
}

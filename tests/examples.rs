//! Runs every example and compares its output with the expected one. (`leader_only` is in `election`.)
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use bellwether_testkit::namespace;

macro_rules! examples {
    ($($name:ident: $test:ident = $path:literal;)*) => {$(
        #[allow(dead_code, reason = "the test calls run, not main")]
        #[path = $path]
        mod $name;

        #[tokio::test(flavor = "multi_thread")]
        async fn $test() {
            assert_eq!($name::run(&namespace(stringify!($name))).await.unwrap(), $name::EXPECTED);
        }
    )*};
}

examples! {
    embed: a_node_is_embedded_and_runs_a_typed_job = "../examples/embed.rs";
    encryption: payloads_and_results_are_encrypted = "../examples/encryption/main.rs";
    retries: failing_jobs_are_retried_die_and_are_retried_by_hand = "../examples/retries.rs";
    cancel: jobs_are_cancelled_at_each_stage = "../examples/cancel.rs";
    affinity: jobs_of_a_key_share_a_node = "../examples/affinity.rs";
    schedules: each_tick_of_a_schedule_has_one_job = "../examples/schedules.rs";
    identity: an_id_is_one_job_and_may_be_submitted_again = "../examples/identity.rs";
    priorities: jobs_run_by_priority_and_in_their_time = "../examples/priorities.rs";
    control: an_operator_explains_pauses_cancels_and_retries = "../examples/control.rs";
    lanes: jobs_of_a_lane_run_one_at_a_time_in_order = "../examples/lanes.rs";
    leases: a_hung_job_moves_and_a_renewed_lease_keeps_its_job = "../examples/leases.rs";
    outcomes: handlers_report_invalid_later_and_progress = "../examples/outcomes.rs";
    retention: records_are_kept_for_a_while = "../examples/retention.rs";
    groups: a_join_runs_once_all_members_have_ended = "../examples/groups.rs";
    sub_jobs: a_finished_handler_runs_after_the_join_of_sub_jobs = "../examples/sub_jobs.rs";
}

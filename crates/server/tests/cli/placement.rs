//! The placement strategy.

use bellwether_testkit::namespace;
use serde_json::json;

use crate::run::run_in;

#[test]
fn the_placement_strategy_is_shown_and_set() {
    let to = namespace("cli-placement");
    run_in(&to, &["job", "submit", "sum", "--id", "a"]).exits(0);
    let document = |strategy: &str, built_in: bool, set: bool| {
        let choices = ["least-loaded", "round-robin", "random", "rendezvous"];
        json!({ "strategy": strategy, "built_in": built_in, "set": set, "choices": choices })
    };
    let show = || {
        let mut shown = run_in(&to, &["placement", "show", "--output", "json"]).exits(0).json();
        let changed = shown.as_object_mut().unwrap().remove("changed").unwrap();
        assert_eq!(changed["what"].as_str(), shown["set"].as_bool().unwrap().then_some("set"), "{changed}");
        shown
    };
    assert_eq!(show(), document("least-loaded", true, false));
    let table = run_in(&to, &["placement", "show"]).exits(0).stdout;
    assert!(table.contains("least-loaded  default"), "{table}");

    run_in(&to, &["placement", "set", "rendezvous"]).exits(0);
    assert_eq!(show(), document("rendezvous", true, true));
    let set = run_in(&to, &["placement", "set", "fullest"]).exits(0);
    set.says(
        "the strategy is not built in: a leader without a custom strategy of this name uses least-loaded",
    )
    .says("fullest");
    assert_eq!(show(), document("fullest", false, true));
    run_in(&to, &["placement", "set", "a b"]).exits(2).says("strategy has ' ' at byte 1");
    assert_eq!(show(), document("fullest", false, true), "nothing was set");
}

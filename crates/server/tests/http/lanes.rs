//! The list of lanes.

use serde_json::json;

use crate::stage::Stage;

#[tokio::test(flavor = "multi_thread")]
async fn lanes_with_open_jobs_are_listed_with_their_first_jobs_by_page() {
    let stage = Stage::new("http-lanes").await;
    let submit = async |id: String, lane: String| {
        let job = json!({ "id": id, "kind": "nobody", "options": { "lane": lane } });
        stage.post("/v1/jobs", &job.to_string()).await.is(201);
    };
    assert_eq!(stage.get("/v1/lanes").await.is(200).json(), json!({ "lanes": [], "next": null }));
    // The names of turns are in another order than the turns.
    for id in ["c", "a", "b"] {
        submit(id.to_owned(), "orders".to_owned()).await;
    }
    for n in 0..20 {
        submit(format!("job-{n}"), format!("account-{n:02}")).await;
    }
    submit("ended".to_owned(), "over".to_owned()).await;
    stage.post("/v1/jobs/ended/cancel", "").await.is(200);

    let mut expected = (0..20)
        .map(|n| json!({ "lane": format!("account-{n:02}"), "jobs": 1, "first": format!("job-{n}") }))
        .collect::<Vec<_>>();
    expected.push(json!({ "lane": "orders", "jobs": 3, "first": "c" }));
    for limit in [1, 8, 100] {
        let (mut seen, mut after) = (Vec::new(), String::new());
        loop {
            let page = stage.get(&format!("/v1/lanes?limit={limit}{after}")).await.is(200).json();
            let lanes = page["lanes"].as_array().unwrap();
            assert!(lanes.len() <= limit);
            seen.extend(lanes.clone());
            let Some(next) = page["next"].as_str() else { break };
            after = format!("&after={next}");
            assert!(seen.len() <= expected.len(), "{limit}");
        }
        seen.sort_by_key(|lane| lane["lane"].as_str().unwrap().to_owned());
        assert_eq!(seen, expected, "{limit}");
    }
    stage.get("/v1/lanes?limit=0").await.problem(400, "invalid", "limit must be 1 to 1000, not 0");
    stage.get("/v1/lanes?after=a/b").await.problem(400, "invalid", "not the `next` of a page");
}

//! What a token may submit, and changes of the token file, as the holder of a token tries to exceed them.

use std::path::PathBuf;

use bellwether_gateway::Protection;
use bellwether_gateway::access::{Issued, Role, Tokens};
use bellwether_testkit::eventually;
use serde_json::json;
use tempfile::TempDir;

use crate::ask::{Answer, Ask};
use crate::stage::{SOON, Stage};

/// A file with one token.
struct File {
    _home: TempDir,
    path: PathBuf,
    token: Issued,
}

impl File {
    fn new(role: Role, scope: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let file =
            Self { path: home.path().join("tokens"), _home: home, token: Issued::new("ci", role).unwrap() };
        file.write(scope);
        file
    }

    fn write(&self, scope: &str) {
        std::fs::write(&self.path, format!("{} {scope} # for the tests\n", self.token.line)).unwrap();
    }

    async fn serve(&self, name: &str) -> Stage {
        let tokens = Tokens::read(&self.path).unwrap();
        Stage::with(name, |builder| builder.protection(Protection::default().tokens(tokens))).await
    }

    async fn post(&self, stage: &Stage, path: &str, body: &str) -> Answer {
        Ask::post(path, body).token(&self.token.secret).of(stage.address()).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_submits_only_kinds_lanes_and_priorities_of_its_scope() {
    let file = File::new(Role::Operate, "kinds=mail,report.* lanes=eu-* max_priority=5");
    let stage = file.serve("http-scope").await;
    let submit = async |job: &str| file.post(&stage, "/v1/jobs", job).await;
    submit(r#"{"kind": "mail", "options": {"lane": "eu-1", "priority": 5}}"#).await.is(201);
    let refused = |answer: Answer, said: &str| answer.problem(403, "forbidden", said);
    refused(submit(r#"{"kind": "exec"}"#).await, "it may submit only jobs of the kinds mail, report.*");
    refused(submit(r#"{"kind": "mail", "options": {"lane": "us"}}"#).await, "it may use only the lanes eu-*");
    refused(
        submit(r#"{"kind": "mail", "options": {"priority": 6}}"#).await,
        "its highest priority is 5, not 6",
    );

    let jobs = r#"{"jobs": [{"kind": "mail"}, {"kind": "exec"}]}"#;
    refused(file.post(&stage, "/v1/batch", jobs).await, "jobs[1]: the token ci may not submit this");
    let group = r#"{"kind": "exec", "id": "g", "total": 0}"#;
    refused(file.post(&stage, "/v1/groups", group).await, "it may submit only jobs of the kinds mail");
    file.post(&stage, "/v1/groups", r#"{"kind": "mail", "id": "g"}"#).await.is(200);
    let members = r#"{"first": 0, "jobs": [{"kind": "exec"}]}"#;
    refused(file.post(&stage, "/v1/groups/mail:g/members", members).await, "jobs[0]: the token ci");
    let schedule = r#"{"id": "s", "every": "1h", "job": {"kind": "exec"}}"#;
    refused(file.post(&stage, "/v1/schedules", schedule).await, "job: the token ci");
    let listed = Ask::get("/v1/jobs").token(&file.token.secret).of(stage.address()).await.is(200).json();
    assert_eq!(listed["jobs"].as_array().unwrap().len(), 1, "{listed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_operators_open_ended_jobs_again_and_only_schedules_use_their_lanes() {
    let again = r#"{"kind": "sum", "payload": [1], "id": "a", "if_exists": "again"}"#;
    for (role, status) in [(Role::Submit, 403), (Role::Operate, 201)] {
        let file = File::new(role, "");
        let stage = file.serve("http-again").await;
        file.post(&stage, "/v1/jobs", again).await.is(status);
        let lane = r#"{"kind": "sum", "options": {"lane": "schedule.nightly"}}"#;
        let refused = file.post(&stage, "/v1/jobs", lane).await;
        refused.problem(400, "invalid", r#"lanes that begin with "schedule." belong to schedules"#);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_has_at_most_so_many_open_jobs() {
    let file = File::new(Role::Operate, "max_open_jobs=3");
    let stage = file.serve("http-open-jobs").await;
    let submit = async |id: &str| {
        let job = json!({ "kind": "sum", "payload": [1], "id": id }).to_string();
        file.post(&stage, "/v1/jobs", &job).await
    };
    file.post(&stage, "/v1/batch", &json!({ "jobs": vec![json!({ "kind": "sum" }); 4] }).to_string())
        .await
        .problem(400, "invalid", "the token ci may have 3 open jobs");
    for id in ["a", "b", "c"] {
        submit(id).await.is(201);
    }
    let refused = submit("d").await.problem(429, "too-many-open-jobs", "has 3 open jobs and may have 3");
    assert_eq!(refused.header("retry-after"), Some("1"));
    file.post(&stage, "/v1/jobs/a/cancel", "{}").await.is(200);
    eventually("the cancelled job makes room", SOON, async || submit("d").await.status == 201).await;
    submit("e").await.problem(429, "too-many-open-jobs", "has 3 open jobs");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_token_file_is_used_without_a_restart_and_a_broken_one_is_not() {
    let file = File::new(Role::Submit, "");
    let stage = file.serve("http-tokens-reload").await;
    let submit = async |id: &str| {
        let job = json!({ "kind": "sum", "id": id }).to_string();
        file.post(&stage, "/v1/jobs", &job).await
    };
    submit("a").await.is(201);
    file.write("kinds=mail");
    eventually("the new scope holds", SOON, async || submit("b").await.status == 403).await;
    // The broken file stands for several rounds; the gateway's round after it proves that they have passed.
    file.write("kinds=");
    submit("c").await.is(403);
    file.write("expires=2020-01-01T00:00:00Z");
    eventually("the token has expired", SOON, async || {
        let answer = submit("d").await;
        // Never in between is the token unknown or unlimited.
        assert!([401, 403].contains(&answer.status), "{answer:?}");
        answer.status == 401
    })
    .await;
    submit("e").await.problem(401, "unauthenticated", "the token ci has expired: ask for a new one");
}

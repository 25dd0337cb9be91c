//! A remote worker that a test drives call by call.

use std::net::SocketAddr;

use bellwether::{JobId, JobView, Node};
use futures::future::{Either, select};
use serde_json::{Value, json};

use crate::ask::{Answer, Ask};
use crate::stage::{SOON, Stage};

/// The kind that the workers run.
pub(super) const KIND: &str = "mail";

pub(super) struct Remote {
    pub(super) key: String,
    pub(super) gateway: SocketAddr,
    pub(super) token: Option<String>,
}

impl Remote {
    /// A worker that is not registered.
    pub(super) fn new(stage: &Stage) -> Self {
        Self { key: uuid::Uuid::now_v7().to_string(), gateway: stage.address(), token: None }
    }

    /// A registered worker with four slots; `change` replaces settings.
    pub(super) async fn registered(stage: &Stage, change: Value) -> Self {
        let remote = Self::new(stage);
        let answer = remote.register(change).await.is(200).json();
        assert!(answer["worker"].is_string(), "{answer}");
        remote
    }

    pub(super) async fn register(&self, change: Value) -> Answer {
        let mut settings = json!({ "node_id": "test", "kinds": [{ "kind": KIND }], "slots": 4 });
        let changes = change.as_object().unwrap().clone();
        settings.as_object_mut().unwrap().extend(changes);
        self.call("PUT", "", &settings).await
    }

    pub(super) async fn call(&self, method: &str, path: &str, body: &Value) -> Answer {
        let path = format!("/v1/remote-workers/{}{path}", self.key);
        let ask = Ask::new(method, &path).header("content-type: application/json");
        let ask = ask.body(body.to_string().as_bytes());
        let ask = match &self.token {
            Some(token) => ask.token(token),
            None => ask,
        };
        ask.of(self.gateway).await
    }

    pub(super) async fn post(&self, path: &str, body: Value) -> Answer {
        self.call("POST", path, &body).await
    }

    /// Polls until there is news, with the attempts that the worker has.
    pub(super) async fn poll(&self, running: &[&Value]) -> Value {
        let running = running.iter().map(|attempt| reference(attempt)).collect::<Vec<_>>();
        self.post("/poll", json!({ "running": running, "timeout": "30s" })).await.is(200).json()
    }

    /// Returns a poll that the gateway has received and not answered.
    pub(super) async fn open_poll(&self, running: &[&Value]) -> impl Future<Output = Value> {
        // A newer poll ends the older one, so the one that is left has arrived.
        let (one, other) = (Box::pin(self.poll(running)), Box::pin(self.poll(running)));
        let (Either::Left((_, newer)) | Either::Right((_, newer))) = select(one, other).await;
        newer
    }

    /// Returns the only attempt of a poll.
    pub(super) async fn attempt(&self, running: &[&Value]) -> Value {
        let polled = self.poll(running).await;
        assert_eq!(
            (polled["attempts"].as_array().unwrap().len(), &polled["stop"]),
            (1, &json!([])),
            "{polled}"
        );
        polled["attempts"][0].clone()
    }

    /// Polls without a wait.
    pub(super) async fn look(&self, running: &[&Value]) -> Value {
        let running = running.iter().map(|attempt| reference(attempt)).collect::<Vec<_>>();
        self.post("/poll", json!({ "running": running, "timeout": "0s" })).await.is(200).json()
    }

    pub(super) async fn heartbeat(&self, attempt: &Value, report: Value) -> Value {
        let mut beat = reference(attempt);
        beat.as_object_mut().unwrap().extend(report.as_object().unwrap().clone());
        self.post("/heartbeat", json!({ "running": [beat] })).await.is(200).json()
    }

    pub(super) async fn finish(&self, attempt: &Value, outcome: Value) -> Answer {
        self.post("/finish", json!({ "attempts": [end(attempt, outcome)] })).await
    }

    /// Finishes an attempt that is still open.
    pub(super) async fn close(&self, attempt: &Value, outcome: Value) {
        let answer = self.finish(attempt, outcome).await.is(200).json();
        assert_eq!(answer["results"][0]["status"], "closed", "{answer}");
    }
}

pub(super) fn reference(attempt: &Value) -> Value {
    json!({ "job": attempt["job"], "attempt": attempt["attempt"], "fencing_token": attempt["fencing_token"] })
}

pub(super) fn end(attempt: &Value, outcome: Value) -> Value {
    let mut end = reference(attempt);
    end["outcome"] = outcome;
    end
}

pub(super) fn succeeded() -> Value {
    json!({ "succeeded": { "json": null } })
}

impl Stage {
    /// Starts a leader that runs no jobs.
    pub(super) async fn leader(&self) -> Node {
        Node::builder(&self.to).start().await.unwrap()
    }

    /// Submits a job of [`KIND`] with these options.
    pub(super) async fn submit(&self, id: &str, options: Value) {
        let job = json!({ "id": id, "kind": KIND, "payload": { "to": "a" }, "options": options });
        self.post("/v1/jobs", &job.to_string()).await.is(201);
    }

    /// Waits for the end of a job.
    pub(super) async fn ended(&self, id: &str) -> JobView {
        let client = bellwether::Client::connect(&self.to).await.unwrap();
        let view = client.wait(&JobId::new(id).unwrap(), SOON).await.unwrap();
        client.close().await;
        view
    }
}

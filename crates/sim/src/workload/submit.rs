//! Submitting single jobs and members of groups.

use bellwether::Job;
use bellwether::client::GroupHandle;
use bellwether_core::name::{JobId, Kind, Lane};
use futures::future::join_all;

use super::Env;
use crate::answer;
use crate::history::{Answer, Call, Digest};
use crate::host::Out;

/// A job to submit, without its id.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    pub(crate) kind: Kind,
    pub(crate) lane: Option<Lane>,
    pub(crate) payload: Digest,
    pub(crate) job: Job,
}

impl Wish {
    /// Creates the submission of a job whose payload is this text as JSON.
    pub(crate) fn new(kind: Kind, lane: Option<Lane>, text: &str, job: Job) -> Self {
        let payload = serde_json::to_vec(text).expect("a string can be encoded as JSON");
        Self { kind, lane, payload: Digest::of(&payload), job }
    }

    fn call(&self, job: JobId) -> Call {
        Call::Submit { job, kind: self.kind.clone(), payload: self.payload, lane: self.lane.clone() }
    }
}

impl Env {
    /// Submits jobs concurrently, in this order.
    pub(crate) async fn submit(self, jobs: Vec<(JobId, Wish)>) {
        let submitted = jobs.into_iter().map(|(id, wish)| {
            let env = &self;
            async move {
                let call = env.invoke(wish.call(id.clone()));
                let done = env.client.submit(wish.job.id(id.as_str())).await;
                env.answer(call, answer::submitted(&done));
                if let Some(generation) = done.ok().and_then(|job| answer::generation(job.accepted())) {
                    env.out(Out::Acknowledged(id, generation));
                }
            }
        });
        join_all(submitted).await;
    }

    /// Submits the member with this number; `last` also seals the group. Returns whether it was accepted.
    pub(super) async fn submit_member(
        &self,
        group: &GroupHandle,
        number: u32,
        wish: Wish,
        last: bool,
    ) -> bool {
        let id = JobId::member(&wish.kind, group.id(), number).expect("short names");
        // The last member takes two calls.
        let promise = self.promise.map(|promise| if last { 2 * promise } else { promise });
        let call = self.invoke_within(wish.call(id), promise);
        let done = if last {
            group.submit_last(number, wish.job).await
        } else {
            group.submit(number, wish.job).await
        };
        let answer = answer::submitted(&done);
        let accepted = answer == Answer::Accepted;
        self.answer(call, answer);
        accepted
    }
}

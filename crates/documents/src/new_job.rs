//! A job to submit, and the job of a schedule.

use bellwether::client::Job;
use clap::Args;
use serde::Deserialize;
use utoipa::ToSchema;

use super::invalid::{Invalid, not_both};
use super::job_options::Options;
use super::text::{DurationText, InstantText, NameText, Text};
use super::word::IfExistsWord;

/// Defines a struct with the fields that every job has and its own fields.
///
/// `P` is the payload as HTTP or a file gives it. The command line has its own argument for it, which can name a file.
macro_rules! with_job {
    ($(#[$attribute:meta])* pub struct $name:ident { $($fields:tt)* }) => {
        $(#[$attribute])*
        pub struct $name<P: Default> {
            /// Kind of the job; it selects the handler.
            #[schema(value_type = $crate::text::KindText)]
            pub kind: String,
            /// Payload for the handler, at most 64 KiB: JSON, kept byte for byte. With a `content_type` other than JSON it is
            /// a string with the text.
            #[arg(skip)]
            #[schema(value_type = serde_json::Value, example = json!({"first": 1, "second": 2}))]
            #[serde(default)]
            payload: P,
            /// Content type of the payload. A payload that is not JSON is passed on unchanged. Default: application/json.
            #[arg(long, value_name = "TYPE")]
            #[schema(example = "application/json")]
            content_type: Option<String>,
            /// Options; those that are left out have their defaults.
            #[command(flatten)]
            #[serde(default)]
            pub options: Options,
            $($fields)*
        }
    };
}

/// Returns a job whose payload is the value of a JSON document: unchanged, or with another content type than JSON the text of a
/// string.
pub fn json_job(kind: &str, json: &str, content_type: &str) -> Result<Job, Invalid> {
    if content_type == "application/json" {
        return Ok(Job::json(kind, json));
    }
    let text = serde_json::from_str::<String>(json).map_err(|_| {
        Invalid(format!("payload must be a string, because its content_type is {content_type:?}"))
    })?;
    Ok(Job::raw(kind, content_type, text.into_bytes()))
}

/// Returns the job, which `with_payload` makes from its kind, payload and content type.
fn make<P, E>(
    (kind, payload, content_type): (&str, P, Option<&str>),
    Options(options): Options,
    with_payload: impl FnOnce(&str, P, &str) -> Result<Job, E>,
) -> Result<Job, E> {
    Ok(with_payload(kind, payload, content_type.unwrap_or("application/json"))?.options(options))
}

with_job! {
    /// The job that each tick of a schedule submits.
    #[derive(Debug, Args, Deserialize, ToSchema)]
    #[serde(deny_unknown_fields)]
    #[schema(as = ScheduledJob)]
    pub struct ScheduledJob {}
}

with_job! {
    /// A job to submit.
    #[derive(Debug, Clone, Args, Deserialize, ToSchema)]
    #[serde(deny_unknown_fields)]
    #[schema(as = NewJob)]
    pub struct NewJob {
        /// Id of the job: letters, digits, `.`, `_` and `-`, at most 128 characters. The same id, kind and payload is the same
        /// job, so submitting a job with an id again is safe. Default: a generated id.
        #[arg(long)]
        #[schema(value_type = Option<NameText>)]
        pub id: Option<String>,
        /// Name of the job within its kind, instead of an id: the id is KIND:NAME.
        #[arg(long, value_name = "NAME", conflicts_with = "id")]
        #[schema(value_type = Option<NameText>)]
        pub named: Option<String>,
        /// What to do if a job with this id exists. Default: same.
        #[arg(long, value_name = "MODE", default_value = "same", hide_default_value = true)]
        #[serde(default)]
        pub if_exists: IfExistsWord,
        /// Do not start the job before this instant, such as 2026-11-21T11:33:00Z, at most ten years ahead.
        #[arg(long, value_name = "INSTANT")]
        run_at: Option<InstantText>,
        /// Do not start the job before this time has passed.
        #[arg(long, value_name = "DURATION", conflicts_with = "run_at")]
        delay: Option<DurationText>,
        /// Do not start the job after this instant: it is dead then.
        #[arg(long, value_name = "INSTANT")]
        expires_at: Option<InstantText>,
        /// Do not start the job after this time has passed: it is dead then.
        #[arg(long, value_name = "DURATION", conflicts_with = "expires_at")]
        expires_in: Option<DurationText>,
    }
}

impl<P: Default> ScheduledJob<P> {
    /// Returns the job, which `with_payload` makes from its kind, payload and content type. It is not checked yet.
    pub fn into_job<E>(self, with_payload: impl FnOnce(&str, P, &str) -> Result<Job, E>) -> Result<Job, E> {
        make((&self.kind, self.payload, self.content_type.as_deref()), self.options, with_payload)
    }
}

impl<P: Default> NewJob<P> {
    /// Returns the job, which `with_payload` makes from its kind, payload and content type. It is not checked yet.
    pub fn into_job<E: From<Invalid>>(
        self,
        with_payload: impl FnOnce(&str, P, &str) -> Result<Job, E>,
    ) -> Result<Job, E> {
        not_both(("id", self.id.is_some()), ("named", self.named.is_some()))?;
        not_both(("run_at", self.run_at.is_some()), ("delay", self.delay.is_some()))?;
        not_both(("expires_at", self.expires_at.is_some()), ("expires_in", self.expires_in.is_some()))?;
        let job = make((&self.kind, self.payload, self.content_type.as_deref()), self.options, with_payload)?;
        let mut job = job.if_exists(self.if_exists.0);
        if let Some(id) = self.id {
            job = job.id(id);
        }
        if let Some(name) = self.named {
            job = job.named(name);
        }
        if let Some(Text(at)) = self.run_at {
            job = job.run_at(at);
        }
        if let Some(Text(delay)) = self.delay {
            job = job.delay(delay);
        }
        if let Some(Text(at)) = self.expires_at {
            job = job.expires_at(at);
        }
        if let Some(Text(wait)) = self.expires_in {
            job = job.expires_in(wait);
        }
        Ok(job)
    }
}

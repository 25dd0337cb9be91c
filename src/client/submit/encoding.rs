//! Submissions of a client with a codec.
//!
//! A codec need not be deterministic, and its key may have been replaced since an earlier submission of the same job. So
//! equal plain payloads may have different stored bytes, by which the batcher compares ([`identity`]). If they differ, the
//! caller decodes the stored ones. If the plain payloads are equal, it sends the submission again and states that those
//! bytes are its own payload.
//!
//! [`identity`]: bellwether_core::job::identity

use bellwether_core::job::Payload;
use futures::future::{Either, ready};

use super::super::Client;
use super::super::error::SubmitError;
use super::super::job::JobError;
use super::super::session::Deadline;
use super::{Answer, Unsent};
use crate::codec::{Codec, CodecContext, CodecError, Part, is_encoded, is_for_kind};

/// How often a submission is sent again for other stored bytes. Each time, the record was removed and created again, or the job
/// was opened again, during the call.
const TRIES: u32 = 5;

impl Client {
    /// Encodes the payload, submits the job, and compares plain payloads if a job with the id exists.
    pub(super) fn encoded(&self, job: Unsent) -> impl Future<Output = Result<Answer, SubmitError>> {
        let by = self.by();
        match &self.0.codec {
            None => match job.record.payload.check_stored() {
                Ok(()) => Either::Left(Either::Left(self.batched(job, by, None))),
                Err(error) => Either::Left(Either::Right(ready(Err(JobError::Payload(error).into())))),
            },
            Some(codec) => Either::Right(Box::pin(self.with_codec(codec, job, by))),
        }
    }

    async fn with_codec(&self, codec: &Codec, mut job: Unsent, by: Deadline) -> Result<Answer, SubmitError> {
        let turn = self.0.turns.take(job.record.placement.lane.as_ref());
        let context = CodecContext::new(Part::Payload, job.record.kind.clone(), job.id.clone());
        let failed = |source| SubmitError::Encode { id: job.id.clone(), source };
        let stored = self.coded(by, codec.encode(&job.record.payload, &context)).await.map_err(failed)?;
        let turn = match turn {
            Some(turn) => Some(self.coded(by, async { Ok(turn.come().await) }).await.map_err(failed)?),
            None => None,
        };
        let plain = std::mem::replace(&mut job.record.payload, stored);
        let mut answer = self.batched(job.clone(), by, turn).await?;
        for _ in 0..TRIES {
            let Some(there) = answer.differs.take() else { break };
            if self.plain_payload(codec, &job, &there, by).await? != plain {
                break;
            }
            if is_for_kind(&there) {
                // A schedule opens this job at its ticks. Its leader compares the stored bytes.
                job.record.payload = there;
            } else {
                job.equal = Some(there);
            }
            answer = self.batched(job.clone(), by, None).await?;
        }
        Ok(answer)
    }

    /// Decodes the stored payload of the existing job.
    async fn plain_payload(
        &self,
        codec: &Codec,
        job: &Unsent,
        there: &Payload,
        by: Deadline,
    ) -> Result<Payload, SubmitError> {
        // Stored without a codec. Whether its worker accepts that is not decided here.
        if !is_encoded(there) {
            return Ok(there.clone());
        }
        let value = (Part::Payload, &job.record.kind, &job.id);
        let decoded = self.coded(by, codec.decode(there, value)).await;
        decoded.map_err(|source| SubmitError::Undecodable { id: job.id.clone(), source })
    }

    /// Awaits a codec until the deadline of the call.
    pub(in crate::client) async fn coded<T>(
        &self,
        by: Deadline,
        coding: impl Future<Output = Result<T, CodecError>>,
    ) -> Result<T, CodecError> {
        let late = || CodecError::retryable(format!("its codec did not answer within {:?}", by.within));
        self.0.session.timeout_at(by.at, coding).await.unwrap_or_else(|_| Err(late()))
    }
}

#[cfg(test)]
mod tests;

//! Schedules of a client with a codec.
//!
//! The jobs of a schedule share one stored payload, so it is encoded without the id of a job.

use bellwether_core::job::Payload;
use bellwether_core::name::ScheduleId;
use bellwether_core::schedule::{ScheduleRecord, ScheduleSpec};

use super::{ScheduleError, Schedules};
use crate::client::session::Deadline;
use crate::codec::{CodecContext, Part, is_encoded};

impl Schedules {
    /// Returns the spec with its payload in the stored form.
    pub(super) async fn encoded(
        &self,
        id: &ScheduleId,
        mut spec: ScheduleSpec,
        by: Deadline,
    ) -> Result<ScheduleSpec, ScheduleError> {
        if let Some(codec) = &self.0.0.codec {
            let template = &mut spec.template;
            let context = CodecContext::new(Part::Payload, template.kind.clone(), None);
            let encoded = self.0.coded(by, codec.encode(&template.payload, &context)).await;
            template.payload = encoded.map_err(|source| ScheduleError::Codec { id: id.clone(), source })?;
        }
        spec.check()?;
        Ok(spec)
    }

    /// Takes the stored bytes of an existing schedule if they encode the same payload: the same payload can be encoded to
    /// different bytes.
    pub(super) async fn adopt_payload(
        &self,
        id: &ScheduleId,
        spec: &mut ScheduleSpec,
        plain: &Payload,
        there: &ScheduleRecord,
        by: Deadline,
    ) -> Result<(), ScheduleError> {
        let Some(codec) = &self.0.0.codec else { return Ok(()) };
        let stored = &there.spec.template;
        if stored.kind != spec.template.kind
            || stored.payload == spec.template.payload
            || !is_encoded(&stored.payload)
        {
            return Ok(());
        }
        match self.0.coded(by, codec.decode_shared(&stored.payload, &stored.kind)).await {
            Ok(decoded) if decoded == *plain => spec.template.payload = stored.payload.clone(),
            // Another payload, or one of another key: a difference, which a replacement repairs.
            Ok(_) => {}
            Err(error) if !error.is_retryable() => {
                tracing::warn!(schedule = %id, %error, "the stored payload of the schedule cannot be decoded");
            }
            Err(source) => return Err(ScheduleError::Codec { id: id.clone(), source }),
        }
        Ok(())
    }
}

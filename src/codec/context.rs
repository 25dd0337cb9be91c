//! What a codec knows about the bytes.

use std::fmt;

use bellwether_core::name::{JobId, Kind};

/// Begins each [`CodecContext::binding`], to distinguish it from other authenticated data of the same key.
const BINDING: &[u8] = b"bellwether payload 1";

/// The value to which the bytes belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Part {
    /// The payload of a job.
    Payload,
    /// The result of a job.
    Result,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Payload => "payload",
            Self::Result => "result",
        })
    }
}

/// The job and the value to which the bytes belong. Encoding and decoding have equal contexts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodecContext {
    /// The payload or the result.
    pub part: Part,
    /// The kind of the job.
    pub kind: Kind,
    /// The job; `None` for the payload of a schedule, which all of its jobs share.
    pub job: Option<JobId>,
}

impl CodecContext {
    /// Creates a context, to use or test a codec alone.
    #[must_use]
    pub fn new(part: Part, kind: Kind, job: impl Into<Option<JobId>>) -> Self {
        Self { part, kind, job: job.into() }
    }

    /// Returns bytes that differ for different contexts: the additional data of an authenticated encryption.
    #[must_use]
    pub fn binding(&self) -> Vec<u8> {
        let part = match self.part {
            Part::Payload => b'p',
            Part::Result => b'r',
        };
        let job = self.job.as_ref().map_or("", JobId::as_str);
        // No name contains a NUL, and no job id is empty.
        [BINDING, &[part], self.kind.as_str().as_bytes(), &[0], job.as_bytes()].concat()
    }
}

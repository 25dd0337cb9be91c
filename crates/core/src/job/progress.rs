//! The progress and checkpoint that an attempt reports while it runs, and that the next attempt starts with.

use std::fmt;
use std::sync::Arc;

use crate::budget::{MAX_CHECKPOINT_BYTES, MAX_MESSAGE_BYTES};

/// The progress of a job. The next attempt starts with the one that was reported last.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Progress {
    percent: Option<u8>,
    message: Arc<str>,
    checkpoint: Arc<[u8]>,
}

/// A progress report that exceeds a bound.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProgressError {
    /// More than 100 percent.
    #[error("percent must be 0 to 100, not {0}")]
    Percent(u8),
    /// The message is too long.
    #[error("a progress message has at most {MAX_MESSAGE_BYTES} bytes, not {0}")]
    Message(usize),
    /// The checkpoint is too large.
    #[error(
        "a checkpoint has at most {MAX_CHECKPOINT_BYTES} bytes, not {0}: store more elsewhere and keep its address"
    )]
    Checkpoint(usize),
}

impl Progress {
    /// Replaces percentage and message, and keeps the checkpoint.
    ///
    /// # Errors
    /// When one exceeds its bound.
    pub fn with_message(
        self,
        percent: Option<u8>,
        message: impl Into<Arc<str>>,
    ) -> Result<Self, ProgressError> {
        let message = message.into();
        if let Some(over) = percent.filter(|percent| *percent > 100) {
            return Err(ProgressError::Percent(over));
        }
        if message.len() > MAX_MESSAGE_BYTES {
            return Err(ProgressError::Message(message.len()));
        }
        Ok(Self { percent, message, ..self })
    }

    /// Replaces the checkpoint, and keeps percentage and message.
    ///
    /// # Errors
    /// When it is too large.
    pub fn with_checkpoint(self, checkpoint: impl Into<Arc<[u8]>>) -> Result<Self, ProgressError> {
        let checkpoint = checkpoint.into();
        if checkpoint.len() > MAX_CHECKPOINT_BYTES {
            return Err(ProgressError::Checkpoint(checkpoint.len()));
        }
        Ok(Self { checkpoint, ..self })
    }

    /// 0 to 100, if it was reported.
    #[must_use]
    pub fn percent(&self) -> Option<u8> {
        self.percent
    }

    /// The message for users; may be empty.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The checkpoint for the next attempt; may be empty.
    #[must_use]
    pub fn checkpoint(&self) -> &[u8] {
        &self.checkpoint
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?}, {} bytes", self.percent, self.message, self.checkpoint.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_progress_error_names_the_bound() {
        let none = Progress::default;
        assert_eq!(
            none().with_message(Some(101), "").unwrap_err().to_string(),
            "percent must be 0 to 100, not 101"
        );
        assert_eq!(none().with_message(None, "x".repeat(1025)), Err(ProgressError::Message(1025)));
        assert_eq!(none().with_checkpoint(vec![0; 16_385]), Err(ProgressError::Checkpoint(16_385)));
    }

    #[test]
    fn progress_at_its_bounds_is_accepted() {
        let (message, checkpoint) = ("x".repeat(MAX_MESSAGE_BYTES), vec![7; MAX_CHECKPOINT_BYTES]);
        let full = Progress::default().with_message(Some(100), message.as_str()).unwrap();
        let full = full.with_checkpoint(checkpoint.as_slice()).unwrap();
        assert_eq!((full.percent(), full.message(), full.checkpoint()), (Some(100), &*message, &*checkpoint));
    }

    #[test]
    fn the_debug_text_contains_the_size_of_the_checkpoint_and_not_its_bytes() {
        let said =
            Progress::default().with_message(Some(7), "seven").unwrap().with_checkpoint(*b"abc").unwrap();
        assert_eq!(format!("{said:?}"), r#"Some(7) "seven", 3 bytes"#);
    }

    #[test]
    fn a_message_keeps_the_checkpoint_and_a_checkpoint_keeps_the_message() {
        let said =
            Progress::default().with_checkpoint(*b"7").unwrap().with_message(Some(7), "seven").unwrap();
        assert_eq!((said.percent(), said.message(), said.checkpoint()), (Some(7), "seven", &b"7"[..]));
        assert_eq!(said.clone().with_checkpoint(*b"8").unwrap().message(), "seven");
    }
}

//! What the package above gives its handlers beyond their context.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// What the package above gives its handlers, such as a client. Nobody here looks into it.
#[derive(Clone, Default)]
pub struct Tools(Option<Arc<dyn Any + Send + Sync>>);

impl Tools {
    /// These.
    #[must_use]
    pub fn new(tools: Arc<dyn Any + Send + Sync>) -> Self {
        Self(Some(tools))
    }

    pub(super) fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.0.clone()?.downcast().ok()
    }
}

impl fmt::Debug for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Tools" } else { "None" })
    }
}

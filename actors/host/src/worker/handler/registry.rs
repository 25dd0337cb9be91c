//! The handlers of a worker.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::budget::MAX_KINDS;
use bellwether_core::job::{Policy, PolicyError};
use bellwether_core::name::{Kind, NameError};
use futures::future::BoxFuture;

use super::{Handler, JobContext, Tools};

/// The handlers of a worker, one per kind. Cheap to clone once complete.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    handlers: Arc<BTreeMap<Kind, Registered>>,
    tools: Tools,
}

/// Runs before a job of its kind is closed as dead because it can never succeed, with the reason.
pub type OnInvalid = Arc<dyn Fn(JobContext, String) -> BoxFuture<'static, ()> + Send + Sync>;

/// A kind's handler, and what holds for its jobs unless they say otherwise.
#[derive(Clone)]
pub struct Registered {
    /// What runs them.
    pub handler: Handler,
    /// Their lease; `None` is five minutes.
    pub lease: Option<Duration>,
    /// Whether it is renewed for as long as the handler runs.
    pub auto_renew: bool,
    /// What is done about those that can never succeed; `None` logs them.
    pub on_invalid: Option<OnInvalid>,
}

impl From<Handler> for Registered {
    fn from(handler: Handler) -> Self {
        Self { handler, lease: None, auto_renew: false, on_invalid: None }
    }
}

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { handler, lease, auto_renew, on_invalid } = self;
        f.debug_struct("Registered")
            .field("handler", handler)
            .field("lease", lease)
            .field("auto_renew", auto_renew)
            .field("on_invalid", &on_invalid.is_some())
            .finish()
    }
}

/// A registry that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// Two handlers for one kind.
    #[error("kind {0} has a handler already")]
    Twice(Kind),
    /// A kind that is not a name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// More kinds than a worker may serve.
    #[error("a worker serves at most {MAX_KINDS} kinds")]
    TooMany,
    /// A lease out of its bounds.
    #[error("kind {0}: {1}")]
    Lease(Kind, #[source] PolicyError),
    /// An option that is not about any kind.
    #[error("{0} is said of the kind that was added before it: add one first")]
    NoKind(&'static str),
}

impl Registry {
    /// Takes one handler per kind.
    ///
    /// # Errors
    /// A kind that comes twice, a lease out of its bounds, or too many kinds.
    pub fn new(
        handlers: impl IntoIterator<Item = (Kind, impl Into<Registered>)>,
    ) -> Result<Self, RegistryError> {
        let mut registry = BTreeMap::new();
        for (kind, handler) in handlers {
            let registered: Registered = handler.into();
            if let Err(error) = (Policy { lease: registered.lease, ..Policy::default() }).check() {
                return Err(RegistryError::Lease(kind, error));
            }
            match registry.entry(kind) {
                Entry::Vacant(free) => free.insert(registered),
                Entry::Occupied(taken) => return Err(RegistryError::Twice(taken.key().clone())),
            };
        }
        if registry.len() > MAX_KINDS {
            return Err(RegistryError::TooMany);
        }
        Ok(Self { handlers: Arc::new(registry), tools: Tools::default() })
    }

    /// The same handlers, which are given these.
    #[must_use]
    pub fn with_tools(self, tools: Tools) -> Self {
        Self { tools, ..self }
    }

    pub(in crate::worker) fn tools(&self) -> Tools {
        self.tools.clone()
    }

    /// The kinds, sorted.
    pub fn kinds(&self) -> impl Iterator<Item = &Kind> {
        self.handlers.keys()
    }

    /// The handler of a kind.
    #[must_use]
    pub fn get(&self, kind: &Kind) -> Option<&Handler> {
        self.handlers.get(kind).map(|registered| &registered.handler)
    }

    /// The handler of a kind, and what holds for its jobs.
    #[must_use]
    pub fn registered(&self, kind: &Kind) -> Option<&Registered> {
        self.handlers.get(kind)
    }

    /// The leases of the kinds that have one of their own.
    #[must_use]
    pub fn leases(&self) -> BTreeMap<Kind, Duration> {
        let of = |(kind, registered): (&Kind, &Registered)| Some((kind.clone(), registered.lease?));
        self.handlers.iter().filter_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handler() -> Handler {
        Handler::Blocking(Arc::new(|context| Ok(context.payload().clone())))
    }

    #[test]
    fn a_kind_has_one_handler() {
        let (a, b) = (Kind::new("a").unwrap(), Kind::new("b").unwrap());
        let twice = [(a.clone(), handler()), (b, handler()), (a.clone(), handler())];
        assert_eq!(Registry::new(twice).unwrap_err(), RegistryError::Twice(a));
    }

    #[test]
    fn a_lease_out_of_its_bounds_is_told_with_its_kind() {
        let long = Registered { lease: Some(Duration::MAX), ..handler().into() };
        let error = Registry::new([(Kind::new("a").unwrap(), long)]).unwrap_err();
        assert!(error.to_string().starts_with("kind a: lease must be 1s to 604800 s"), "{error}");
    }
}

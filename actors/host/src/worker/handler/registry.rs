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

use super::{Handler, RunContext};

/// The handlers of a worker, one per kind. Cheap to clone once complete.
#[derive(Debug)]
pub struct Registry<C = RunContext> {
    handlers: Arc<BTreeMap<Kind, Registered<C>>>,
}

impl<C> Clone for Registry<C> {
    fn clone(&self) -> Self {
        Self { handlers: Arc::clone(&self.handlers) }
    }
}

/// Runs before a job of its kind is closed as dead because it can never succeed, with the reason.
pub type OnInvalid<C = RunContext> = Arc<dyn Fn(C, String) -> BoxFuture<'static, ()> + Send + Sync>;

/// A kind's handler, and what holds for its jobs unless they say otherwise.
pub struct Registered<C = RunContext> {
    /// What runs them.
    pub handler: Handler<C>,
    /// Their lease; `None` is five minutes.
    pub lease: Option<Duration>,
    /// Whether it is renewed for as long as the handler runs.
    pub auto_renew: bool,
    /// What is done about those that can never succeed; `None` logs them.
    pub on_invalid: Option<OnInvalid<C>>,
}

impl<C> Clone for Registered<C> {
    fn clone(&self) -> Self {
        let Self { handler, lease, auto_renew, on_invalid } = self;
        let (handler, on_invalid) = (handler.clone(), on_invalid.clone());
        Self { handler, lease: *lease, auto_renew: *auto_renew, on_invalid }
    }
}

impl<C> From<Handler<C>> for Registered<C> {
    fn from(handler: Handler<C>) -> Self {
        Self { handler, lease: None, auto_renew: false, on_invalid: None }
    }
}

impl<C> fmt::Debug for Registered<C> {
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

impl<C: 'static> Registry<C> {
    /// Takes one handler per kind.
    ///
    /// # Errors
    /// A kind that comes twice, a lease out of its bounds, or too many kinds.
    pub fn new(
        handlers: impl IntoIterator<Item = (Kind, impl Into<Registered<C>>)>,
    ) -> Result<Self, RegistryError> {
        let mut registry = BTreeMap::new();
        for (kind, handler) in handlers {
            let registered: Registered<C> = handler.into();
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
        Ok(Self { handlers: Arc::new(registry) })
    }

    /// The same handlers for contexts of type `D`.
    #[must_use]
    pub fn adapt<D: 'static>(&self, convert: impl Fn(D) -> C + Clone + Send + Sync + 'static) -> Registry<D> {
        let adapt = |(kind, registered): (&Kind, &Registered<C>)| {
            let Registered { handler, lease, auto_renew, on_invalid } = registered.clone();
            let (handler, convert) = (handler.adapt(convert.clone()), convert.clone());
            let on_invalid = on_invalid
                .map(|run| -> OnInvalid<D> { Arc::new(move |context, why| run(convert(context), why)) });
            (kind.clone(), Registered { handler, lease, auto_renew, on_invalid })
        };
        Registry { handlers: Arc::new(self.handlers.iter().map(adapt).collect()) }
    }

    /// The kinds, sorted.
    pub fn kinds(&self) -> impl Iterator<Item = &Kind> {
        self.handlers.keys()
    }

    /// The handler of a kind.
    #[must_use]
    pub fn get(&self, kind: &Kind) -> Option<&Handler<C>> {
        self.handlers.get(kind).map(|registered| &registered.handler)
    }

    /// The handler of a kind, and what holds for its jobs.
    #[must_use]
    pub fn registered(&self, kind: &Kind) -> Option<&Registered<C>> {
        self.handlers.get(kind)
    }

    /// The leases of the kinds that have one of their own.
    #[must_use]
    pub fn leases(&self) -> BTreeMap<Kind, Duration> {
        let of = |(kind, registered): (&Kind, &Registered<C>)| Some((kind.clone(), registered.lease?));
        self.handlers.iter().filter_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handler() -> Handler {
        Handler::Blocking(Arc::new(|context: RunContext| Ok(context.payload)))
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

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

/// The handlers of a worker, one per kind. Cheap to clone.
#[derive(Debug)]
pub struct Registry<C = RunContext> {
    handlers: Arc<BTreeMap<Kind, Registered<C>>>,
}

impl<C> Clone for Registry<C> {
    fn clone(&self) -> Self {
        Self { handlers: Arc::clone(&self.handlers) }
    }
}

/// Called with the reason before a job of the kind is closed as dead because it can never succeed.
pub type OnInvalid<C = RunContext> = Arc<dyn Fn(C, String) -> BoxFuture<'static, ()> + Send + Sync>;

/// A kind's handler, and the defaults for the jobs of the kind.
pub struct Registered<C = RunContext> {
    /// The handler.
    pub handler: Handler<C>,
    /// The lease; `None` means five minutes.
    pub lease: Option<Duration>,
    /// Whether the lease is renewed automatically while the handler runs.
    pub auto_renew: bool,
    /// How many jobs of the kind run at the same time; `None` means as many as there are slots.
    pub concurrency: Option<u32>,
    /// The handler of jobs that can never succeed; with `None` they are logged.
    pub on_invalid: Option<OnInvalid<C>>,
}

impl<C> Clone for Registered<C> {
    fn clone(&self) -> Self {
        let Self { handler, lease, auto_renew, concurrency, on_invalid } = self;
        let (handler, on_invalid) = (Arc::clone(handler), on_invalid.clone());
        Self { handler, lease: *lease, auto_renew: *auto_renew, concurrency: *concurrency, on_invalid }
    }
}

impl<C> From<Handler<C>> for Registered<C> {
    fn from(handler: Handler<C>) -> Self {
        Self { handler, lease: None, auto_renew: false, concurrency: None, on_invalid: None }
    }
}

impl<C> fmt::Debug for Registered<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { handler: _, lease, auto_renew, concurrency, on_invalid } = self;
        f.debug_struct("Registered")
            .field("lease", lease)
            .field("auto_renew", auto_renew)
            .field("concurrency", concurrency)
            .field("on_invalid", &on_invalid.is_some())
            .finish_non_exhaustive()
    }
}

/// An invalid set of handlers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// Two handlers for one kind.
    #[error("kind {0} has a handler already")]
    Twice(Kind),
    /// An invalid name of a kind.
    #[error(transparent)]
    Name(#[from] NameError),
    /// More kinds than a worker may serve.
    #[error("a worker serves at most {MAX_KINDS} kinds")]
    TooMany,
    /// A lease outside of its bounds.
    #[error("kind {0}: {1}")]
    Lease(Kind, #[source] PolicyError),
    /// A concurrency of zero.
    #[error("kind {0}: concurrency must be at least 1, not 0: pause the kind to run none of its jobs")]
    Concurrency(Kind),
}

bellwether_core::impl_remedy!(@invalid RegistryError);

impl<C: 'static> Registry<C> {
    /// Creates a registry with one handler per kind.
    ///
    /// # Errors
    /// A kind that is given twice, a lease or a concurrency outside of its bounds, or too many kinds.
    pub fn new(
        handlers: impl IntoIterator<Item = (Kind, impl Into<Registered<C>>)>,
    ) -> Result<Self, RegistryError> {
        let mut registry = BTreeMap::new();
        for (kind, handler) in handlers {
            let registered: Registered<C> = handler.into();
            if let Err(error) = (Policy { lease: registered.lease, ..Policy::default() }).check() {
                return Err(RegistryError::Lease(kind, error));
            }
            if registered.concurrency == Some(0) {
                return Err(RegistryError::Concurrency(kind));
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

    /// Converts the handlers to contexts of type `D`.
    #[must_use]
    pub fn adapt<D: 'static>(&self, convert: impl Fn(D) -> C + Clone + Send + Sync + 'static) -> Registry<D> {
        let adapt = |(kind, registered): (&Kind, &Registered<C>)| {
            let Registered { handler, lease, auto_renew, concurrency, on_invalid } = registered.clone();
            let (of_handler, convert) = (convert.clone(), convert.clone());
            let handler: Handler<D> = Arc::new(move |context| handler(of_handler(context)));
            let on_invalid = on_invalid
                .map(|run| -> OnInvalid<D> { Arc::new(move |context, why| run(convert(context), why)) });
            (kind.clone(), Registered { handler, lease, auto_renew, concurrency, on_invalid })
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

    /// The handler of a kind, with the defaults for its jobs.
    #[must_use]
    pub fn registered(&self, kind: &Kind) -> Option<&Registered<C>> {
        self.handlers.get(kind)
    }

    /// The leases of the kinds that do not use the default.
    #[must_use]
    pub fn leases(&self) -> BTreeMap<Kind, Duration> {
        let of = |(kind, registered): (&Kind, &Registered<C>)| Some((kind.clone(), registered.lease?));
        self.handlers.iter().filter_map(of).collect()
    }

    /// The limits of the kinds that may not use all slots.
    #[must_use]
    pub fn concurrency(&self) -> BTreeMap<Kind, u32> {
        let of = |(kind, registered): (&Kind, &Registered<C>)| Some((kind.clone(), registered.concurrency?));
        self.handlers.iter().filter_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handler() -> Handler {
        Arc::new(|context: RunContext| Box::pin(async move { Ok(context.payload) }))
    }

    #[test]
    fn a_kind_has_one_handler() {
        let (a, b) = (Kind::new("a").unwrap(), Kind::new("b").unwrap());
        let twice = [(a.clone(), handler()), (b, handler()), (a.clone(), handler())];
        assert_eq!(Registry::new(twice).unwrap_err(), RegistryError::Twice(a));
    }

    #[test]
    fn an_error_about_a_lease_names_its_kind() {
        let long = Registered { lease: Some(Duration::MAX), ..handler().into() };
        let error = Registry::new([(Kind::new("a").unwrap(), long)]).unwrap_err();
        assert!(error.to_string().starts_with("kind a: lease must be 1s to 7d"), "{error}");
    }

    #[test]
    fn a_concurrency_of_zero_is_an_error() {
        let a = Kind::new("a").unwrap();
        let none = Registered { concurrency: Some(0), ..handler().into() };
        assert_eq!(Registry::new([(a.clone(), none)]).unwrap_err(), RegistryError::Concurrency(a.clone()));
        let one = Registered { concurrency: Some(1), ..handler().into() };
        let registry =
            Registry::new([(a.clone(), one), (Kind::new("b").unwrap(), handler().into())]).unwrap();
        assert_eq!(registry.concurrency(), BTreeMap::from([(a, 1)]));
    }
}

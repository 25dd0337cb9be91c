//! A part of a state, shared by all states in which it is equal.
//!
//! Most steps change one part of a state: a node, or the server. The other parts are neither copied nor hashed again,
//! which would take most of the time of an exploration.

use std::hash::{Hash, Hasher};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use ahash::RandomState;

/// The hash with which stateright recognises states, with fixed keys: the hashes of the parts of a state are a part of its hash.
static BUILD: RandomState = RandomState::with_seeds(1, 2, 3, 4);

#[derive(Debug, Clone)]
pub(crate) struct Part<T>(Arc<Inner<T>>);

#[derive(Debug)]
struct Inner<T> {
    value: T,
    hash: OnceLock<u64>,
}

impl<T: Clone> Clone for Inner<T> {
    fn clone(&self) -> Self {
        Self { value: self.value.clone(), hash: OnceLock::new() }
    }
}

impl<T> Part<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Arc::new(Inner { value, hash: OnceLock::new() }))
    }
}

impl<T> Deref for Part<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.value
    }
}

impl<T: Clone> DerefMut for Part<T> {
    fn deref_mut(&mut self) -> &mut T {
        let inner = Arc::make_mut(&mut self.0);
        inner.hash.take();
        &mut inner.value
    }
}

impl<T: Hash> Part<T> {
    fn fingerprint(&self) -> u64 {
        *self.0.hash.get_or_init(|| BUILD.hash_one(&self.0.value))
    }
}

impl<T: Hash> Hash for Part<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.fingerprint());
    }
}

impl<T: PartialEq> PartialEq for Part<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.value == other.0.value
    }
}

impl<T: Eq> Eq for Part<T> {}

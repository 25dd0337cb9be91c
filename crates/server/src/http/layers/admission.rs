//! Limits of concurrent requests, in total and per caller.
//!
//! Requests do not wait here: a queue in front of a saturated gateway would only delay its answers. The limit per
//! caller keeps one program that loops without a pause from blocking the others.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bellwether::metrics as metric;

use super::credentials::Caller;
use crate::http::problem::{Fault, Problem};

/// Callers without a token are identified by their addresses.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Token(Arc<str>),
    Address(Option<IpAddr>),
}

/// A handle, cheap to clone.
#[derive(Debug, Clone)]
pub(in crate::http) struct Admission(Arc<Inside>);

#[derive(Debug)]
struct Inside {
    most: usize,
    most_of_one: usize,
    under_way: Mutex<UnderWay>,
}

/// Has at most as many callers as requests.
#[derive(Debug, Default)]
struct UnderWay {
    all: usize,
    of_one: HashMap<Key, usize>,
}

/// The permit of one request, returned when dropped.
#[derive(Debug)]
pub(super) struct Permit {
    admission: Admission,
    key: Key,
}

impl Admission {
    pub(in crate::http) fn new(most: usize, most_of_one: usize) -> Self {
        Self(Arc::new(Inside { most, most_of_one, under_way: Mutex::default() }))
    }

    /// Returns 503 if the total limit is reached, 429 if the limit of this caller is reached.
    pub(super) fn enter(&self, caller: &Caller) -> Result<Permit, Problem> {
        let key = match &*caller.name {
            "anonymous" => Key::Address(caller.address),
            _ => Key::Token(Arc::clone(&caller.name)),
        };
        let mut under_way = self.0.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        if under_way.all >= self.0.most {
            refused("requests");
            return Err(Fault::Saturated.because("the limit of concurrent requests is reached"));
        }
        let of_one = under_way.of_one.entry(key.clone()).or_default();
        if *of_one >= self.0.most_of_one {
            refused("one_caller");
            let most = self.0.most_of_one;
            return Err(Fault::TooMany.because(format!(
                "at most {most} concurrent requests per caller are served: wait for their answers"
            )));
        }
        *of_one += 1;
        under_way.all += 1;
        Ok(Permit { admission: self.clone(), key })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut under_way = self.admission.0.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.all -= 1;
        if let Some(of_one) = under_way.of_one.get_mut(&self.key) {
            *of_one -= 1;
            if *of_one == 0 {
                under_way.of_one.remove(&self.key);
            }
        }
    }
}

fn refused(reason: &'static str) {
    metrics::counter!(metric::HTTP_REFUSALS, "reason" => reason).increment(1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::access::Role;

    fn caller(name: &str) -> Caller {
        Caller { name: name.into(), role: Role::Read, scope: Arc::default(), address: None }
    }

    #[test]
    fn one_caller_has_a_share_and_all_have_a_bound() {
        let admission = Admission::new(3, 2);
        let (a, b) = (caller("a"), caller("b"));
        let first = admission.enter(&a).unwrap();
        let _second = admission.enter(&a).unwrap();
        assert_eq!(
            admission.enter(&a).unwrap_err(),
            Fault::TooMany
                .because("at most 2 concurrent requests per caller are served: wait for their answers")
        );
        let third = admission.enter(&b).unwrap();
        assert_eq!(
            admission.enter(&b).unwrap_err(),
            Fault::Saturated.because("the limit of concurrent requests is reached")
        );
        drop(first);
        let _fourth = admission.enter(&b).unwrap();
        drop(third);
        let _fifth = admission.enter(&a).unwrap();
        assert_eq!(admission.0.under_way.lock().unwrap().all, 3);
    }

    #[test]
    fn callers_without_requests_are_forgotten() {
        let admission = Admission::new(3, 2);
        for n in 0..100 {
            drop(admission.enter(&caller(&format!("c{n}"))).unwrap());
        }
        assert!(admission.0.under_way.lock().unwrap().of_one.is_empty());
    }
}

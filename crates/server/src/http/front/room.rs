//! How many requests are under way, in all and of one caller.
//!
//! Nobody waits here for room: a queue in front of a gateway that has too much to do only makes its answers late as well.
//! One caller has a share, so that a loop without a pause, in one program, does not shut the others out.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bellwether::metrics as metric;

use super::credentials::Caller;
use crate::http::problem::{Fault, Problem};

/// Those without a token are told apart by their addresses.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Token(Arc<str>),
    Address(Option<IpAddr>),
}

/// A handle, cheap to clone.
#[derive(Debug, Clone)]
pub(in crate::http) struct Room(Arc<Inside>);

#[derive(Debug)]
struct Inside {
    most: usize,
    most_of_one: usize,
    under_way: Mutex<UnderWay>,
}

/// Never more callers than requests.
#[derive(Debug, Default)]
struct UnderWay {
    all: usize,
    of_one: HashMap<Key, usize>,
}

/// One request's place, until it is dropped.
#[derive(Debug)]
pub(super) struct Guest {
    room: Room,
    key: Key,
}

impl Room {
    pub(in crate::http) fn new(most: usize, most_of_one: usize) -> Self {
        Self(Arc::new(Inside { most, most_of_one, under_way: Mutex::default() }))
    }

    /// 503 when there is no room at all, 429 when this caller has its share.
    pub(super) fn enter(&self, caller: &Caller) -> Result<Guest, Problem> {
        let key = match &*caller.name {
            "anonymous" => Key::Address(caller.address),
            _ => Key::Token(Arc::clone(&caller.name)),
        };
        let mut under_way = self.0.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        if under_way.all >= self.0.most {
            refused("requests");
            return Err(Fault::Saturated.because("as many requests are under way as there may be"));
        }
        let of_one = under_way.of_one.entry(key.clone()).or_default();
        if *of_one >= self.0.most_of_one {
            refused("one_caller");
            let most = self.0.most_of_one;
            return Err(Fault::TooMany.because(format!(
                "at most {most} requests of one caller are served at a time: wait for their answers"
            )));
        }
        *of_one += 1;
        under_way.all += 1;
        Ok(Guest { room: self.clone(), key })
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut under_way = self.room.0.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.all -= 1;
        if let Some(of_one) = under_way.of_one.get_mut(&self.key) {
            *of_one -= 1;
            if *of_one == 0 {
                under_way.of_one.remove(&self.key);
            }
        }
    }
}

fn refused(why: &'static str) {
    metrics::counter!(metric::HTTP_REFUSED, "why" => why).increment(1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::access::Role;

    fn caller(name: &str) -> Caller {
        Caller { name: name.into(), role: Role::Read, address: None }
    }

    #[test]
    fn one_caller_has_a_share_and_all_have_a_bound() {
        let room = Room::new(3, 2);
        let (a, b) = (caller("a"), caller("b"));
        let first = room.enter(&a).unwrap();
        let _second = room.enter(&a).unwrap();
        assert_eq!(
            room.enter(&a).unwrap_err(),
            Fault::TooMany
                .because("at most 2 requests of one caller are served at a time: wait for their answers")
        );
        let third = room.enter(&b).unwrap();
        assert_eq!(
            room.enter(&b).unwrap_err(),
            Fault::Saturated.because("as many requests are under way as there may be")
        );
        drop(first);
        let _fourth = room.enter(&b).unwrap();
        drop(third);
        let _fifth = room.enter(&a).unwrap();
        assert_eq!(room.0.under_way.lock().unwrap().all, 3);
    }

    #[test]
    fn nothing_is_kept_of_callers_that_have_left() {
        let room = Room::new(3, 2);
        for n in 0..100 {
            drop(room.enter(&caller(&format!("c{n}"))).unwrap());
        }
        assert!(room.0.under_way.lock().unwrap().of_one.is_empty());
    }
}

//! Limits of concurrent requests, in total and per caller.
//!
//! Requests do not wait here: a queue in front of a saturated gateway would only delay its answers. The limit per
//! caller keeps one program that loops without a pause from blocking the others. Long polls, event streams and batches have
//! limits of their own, of which one caller has a share.
//!
//! A permit is returned when the body of the answer has been sent or its connection has ended, so that answers that wait
//! for their readers count.

use std::collections::HashMap;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use bellwether::metrics::HttpRefusal;
use hyper::body::{Frame, SizeHint};

use super::credentials::{Caller, Credential};
use crate::metrics::refused;
use crate::problem::{Fault, Problem};

/// A limited resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limited {
    Requests,
    Waits,
    Streams,
    Batches,
}

impl Limited {
    /// The label of the metric of refusals.
    const fn reason(self) -> HttpRefusal {
        match self {
            Self::Requests => HttpRefusal::Requests,
            Self::Waits => HttpRefusal::Waits,
            Self::Streams => HttpRefusal::Streams,
            Self::Batches => HttpRefusal::Batches,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Requests => "concurrent requests",
            Self::Waits => "concurrent waits",
            Self::Streams => "event streams",
            Self::Batches => "concurrent batches",
        }
    }

    /// What a refused caller can do.
    const fn advice(self) -> &'static str {
        match self {
            Self::Waits => ": read the current state instead",
            Self::Requests | Self::Streams | Self::Batches => "",
        }
    }
}

/// Callers without a token or certificate are identified by their addresses.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Named(Arc<str>),
    Address(Option<IpAddr>),
}

impl Key {
    pub(super) fn of(caller: &Caller) -> Self {
        match caller.credential {
            Credential::None => Self::Address(caller.address),
            Credential::Token | Credential::Certificate => Self::Named(Arc::clone(&caller.name)),
        }
    }

    /// Whether it may stand for many callers: those of a proxy on this machine, or all programs of a developer.
    fn is_shared(&self) -> bool {
        match self {
            Self::Named(_) => false,
            Self::Address(address) => address.is_none_or(|address| address.to_canonical().is_loopback()),
        }
    }
}

/// A handle, cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Admission(Arc<Inside>);

#[derive(Debug)]
struct Inside {
    what: Limited,
    most: usize,
    most_of_one: usize,
    /// Whether callers without a token on this machine have no limit of their own.
    spares_shared: bool,
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
pub(crate) struct Permit {
    admission: Admission,
    key: Key,
}

impl Admission {
    pub(crate) fn requests(most: usize, most_of_one: usize) -> Self {
        Self::new(Limited::Requests, most, most_of_one, false)
    }

    /// One token, or one address of another machine, has at most half.
    pub(crate) fn shared(what: Limited, most: usize) -> Self {
        Self::new(what, most, most.div_ceil(2), true)
    }

    fn new(what: Limited, most: usize, most_of_one: usize, spares_shared: bool) -> Self {
        Self(Arc::new(Inside { what, most, most_of_one, spares_shared, under_way: Mutex::default() }))
    }

    /// Returns 503 if the total limit is reached, 429 if the limit of this caller is reached.
    pub(crate) fn enter(&self, caller: &Caller) -> Result<Permit, Problem> {
        let Inside { what, most, most_of_one, spares_shared, ref under_way } = *self.0;
        let key = Key::of(caller);
        let mut under_way = under_way.lock().unwrap_or_else(PoisonError::into_inner);
        if under_way.all >= most {
            refused(what.reason());
            let (name, advice) = (what.name(), what.advice());
            return Err(Fault::Saturated.because(format!("the limit of {name} is reached{advice}")));
        }
        let most_of_one = if spares_shared && key.is_shared() { most } else { most_of_one };
        let of_one = under_way.of_one.entry(key.clone()).or_default();
        if *of_one >= most_of_one {
            refused(HttpRefusal::OneCaller);
            let name = what.name();
            return Err(Fault::TooMany.because(format!(
                "at most {most_of_one} {name} per caller are served: wait for their answers"
            )));
        }
        *of_one += 1;
        under_way.all += 1;
        Ok(Permit { admission: self.clone(), key })
    }

    /// Whether no permit is in use.
    pub(crate) fn is_idle(&self) -> bool {
        self.0.under_way.lock().unwrap_or_else(PoisonError::into_inner).all == 0
    }
}

/// Attaches the permit to an answer, whose body may still be replaced by that of a problem.
pub(super) fn attached(mut answer: Response, permit: Permit) -> Response {
    answer.extensions_mut().insert(Arc::new(permit));
    answer
}

/// Keeps the attached permit until the bytes of the answer have been written. hyper drops a body before it has written the last bytes,
/// so the bytes own the permit too.
pub(super) fn held(mut answer: Response) -> Response {
    match answer.extensions_mut().remove::<Arc<Permit>>() {
        Some(permit) => answer.map(|body| Body::new(Held { body, permit })),
        None => answer,
    }
}

struct Held {
    body: Body,
    permit: Arc<Permit>,
}

struct HeldBytes {
    bytes: Bytes,
    _permit: Arc<Permit>,
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let hold = |bytes| Bytes::from_owner(HeldBytes { bytes, _permit: Arc::clone(&self.permit) });
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(hold))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
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

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;
    use crate::access::Role;

    fn caller(name: &str) -> Caller {
        let credential = Credential::Token;
        Caller { credential, name: name.into(), role: Role::Read, scope: Arc::default(), address: None }
    }

    #[test]
    fn one_caller_has_a_share_and_all_have_a_bound() {
        let admission = Admission::requests(3, 2);
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
    fn one_token_has_half_of_the_long_requests_and_a_proxy_on_this_machine_has_all() {
        let waits = Admission::shared(Limited::Waits, 4);
        let of = |caller: &Caller| std::iter::from_fn(|| waits.enter(caller).ok()).collect::<Vec<_>>();
        let greedy = of(&caller("a"));
        assert_eq!(greedy.len(), 2);
        assert_eq!(
            waits.enter(&caller("a")).unwrap_err(),
            Fault::TooMany
                .because("at most 2 concurrent waits per caller are served: wait for their answers")
        );
        assert_eq!(of(&caller("b")).len(), 2);
        drop(greedy);
        let anonymous = |address: &str| Caller {
            credential: Credential::None,
            address: address.parse().ok(),
            ..caller("anonymous")
        };
        assert_eq!(of(&anonymous("10.0.0.7")).len(), 2);
        assert_eq!(of(&anonymous("127.0.0.1")).len(), 4);
    }

    #[tokio::test]
    async fn a_permit_lasts_as_long_as_the_bytes_of_its_answer() {
        let admission = Admission::requests(3, 2);
        let permit = admission.enter(&caller("a")).unwrap();
        let answer = held(attached(Response::new(Body::from("answer")), permit));
        assert_eq!(answer.body().size_hint().exact(), Some(6));
        let mut body = answer.into_body();
        let bytes = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert!(body.is_end_stream());
        drop(body);
        assert_eq!(bytes, "answer");
        assert!(!admission.is_idle());
        drop(bytes);
        assert!(admission.is_idle());
    }

    #[test]
    fn callers_without_requests_are_forgotten() {
        let admission = Admission::requests(3, 2);
        for n in 0..100 {
            drop(admission.enter(&caller(&format!("c{n}"))).unwrap());
        }
        assert!(admission.0.under_way.lock().unwrap().of_one.is_empty());
    }
}

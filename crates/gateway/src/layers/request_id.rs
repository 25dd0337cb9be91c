//! An id for each request, to find it in the log.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue};
use uuid::Uuid;

/// The caller's id if it is safe to log, otherwise a generated one.
#[derive(Debug, Clone)]
pub(super) struct RequestId(Arc<str>);

const MAX_BYTES: usize = 64;

impl RequestId {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let own = headers.get("x-request-id").and_then(|value| value.to_str().ok());
        let fits = |id: &&str| {
            (1..=MAX_BYTES).contains(&id.len())
                && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        };
        Self(own.filter(fits).map_or_else(|| Uuid::now_v7().to_string().into(), Arc::from))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn header(&self) -> HeaderValue {
        HeaderValue::from_str(&self.0).expect("its characters are valid in headers")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callers_id_is_kept_if_it_is_safe_to_log() {
        let of = |id: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert("x-request-id", HeaderValue::from_bytes(id).unwrap());
            RequestId::of(&headers).as_str().to_owned()
        };
        assert_eq!(of(b"order-7.1_a"), "order-7.1_a");
        for odd in [&b""[..], b"a b", b"a\tb", b"\xff", b"a=\"x\"", &[b'x'; 65]] {
            Uuid::try_parse(&of(odd)).expect("a generated id");
        }
    }
}

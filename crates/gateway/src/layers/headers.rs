//! Headers that tell a browser what an answer may do.

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// Answers of the API are no pages: they load nothing, and nothing may frame them.
const POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Swagger UI loads only files of this gateway, and sets styles from its scripts.
const DOCS_POLICY: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A year, as browsers' lists of such hosts ask for.
const TLS_ONLY: &str = "max-age=31536000";

/// Adds the headers that a route has not set.
pub(super) fn protect(headers: &mut HeaderMap, is_docs: bool, is_tls: bool) {
    let mut add = |name: HeaderName, value| {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    };
    add(X_CONTENT_TYPE_OPTIONS, "nosniff");
    add(X_FRAME_OPTIONS, "DENY");
    add(REFERRER_POLICY, "no-referrer");
    add(CACHE_CONTROL, "no-store");
    add(CONTENT_SECURITY_POLICY, if is_docs { DOCS_POLICY } else { POLICY });
    if is_tls {
        add(STRICT_TRANSPORT_SECURITY, TLS_ONLY);
    }
}

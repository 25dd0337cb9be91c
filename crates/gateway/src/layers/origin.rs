//! Rejects requests that pages of other sites send through a user's browser.
//!
//! A gateway on the loopback interface needs no token, and every page in a browser of that machine can send requests to
//! it. Two headers identify such a page: its `Origin`, and its `Host` if its own name resolves to this machine (DNS
//! rebinding).

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, Method};

use super::mutates;
use crate::problem::{Fault, Problem};

pub(super) fn check(local_only: bool, method: &Method, headers: &HeaderMap) -> Result<(), Problem> {
    let host = headers.get(HOST).map(|host| host.to_str().unwrap_or("?"));
    if local_only && host.is_some_and(|host| !is_this_machine(host)) {
        return Err(Fault::ForeignOrigin
            .because("without tokens the gateway accepts only the hosts localhost, 127.0.0.1 and [::1]"));
    }
    let origin = headers.get(ORIGIN).map(|origin| origin.to_str().unwrap_or("?"));
    let own = |origin: &str| origin.split_once("://").map(|(_, authority)| authority) == host;
    if mutates(method) && origin.is_some_and(|origin| !own(origin)) {
        return Err(Fault::ForeignOrigin.because("a page of another site may not change anything here"));
    }
    Ok(())
}

fn is_this_machine(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        Some(_) | None => host,
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost")
        || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn allowed(local_only: bool, method: &Method, host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(host).unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        check(local_only, method, &headers).is_ok()
    }

    #[test]
    fn foreign_pages_are_rejected_by_origin_and_rebound_names_by_host() {
        for host in ["localhost:8080", "LOCALHOST", "127.0.0.1", "127.0.0.1:8080", "[::1]:8080", "[::1]"] {
            assert!(allowed(true, &Method::POST, host, None), "{host}");
        }
        for host in ["evil.example:8080", "localhost.evil.example", "10.0.0.7", "127.0.0.1.evil.example", "["]
        {
            assert!(!allowed(true, &Method::GET, host, None), "{host}");
            assert!(allowed(false, &Method::GET, host, None), "{host}");
        }
        assert!(allowed(true, &Method::POST, "localhost:8080", Some("http://localhost:8080")));
        for origin in ["http://evil.example", "http://localhost:9090", "null"] {
            assert!(!allowed(true, &Method::POST, "localhost:8080", Some(origin)), "{origin}");
            assert!(!allowed(false, &Method::POST, "bw.example", Some(origin)), "{origin}");
            // Such a page cannot read the answer, because no header allows it.
            assert!(allowed(true, &Method::GET, "localhost:8080", Some(origin)), "{origin}");
        }
    }
}

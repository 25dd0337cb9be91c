//! The address of a caller behind a trusted proxy.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;

const FORWARDED_FOR: &str = "x-forwarded-for";

/// Returns the address that the caller had at the first trusted proxy. Addresses that an untrusted peer wrote count for
/// nothing: the last one that is not of a trusted proxy is the caller's.
pub(super) fn caller(trusted: &[IpAddr], peer: SocketAddr, headers: &HeaderMap) -> SocketAddr {
    let is_trusted = |address: IpAddr| trusted.contains(&address.to_canonical());
    if !is_trusted(peer.ip()) {
        return peer;
    }
    let mut caller = peer;
    let values = headers.get_all(FORWARDED_FOR).iter().collect::<Vec<_>>();
    for value in values.into_iter().rev() {
        let Ok(value) = value.to_str() else { return caller };
        for address in value.rsplit(',') {
            let Ok(address) = address.trim().parse::<IpAddr>() else { return caller };
            // The port is not known.
            caller = SocketAddr::new(address, 0);
            if !is_trusted(address) {
                return caller;
            }
        }
    }
    caller
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_trusted_proxy_names_its_caller_and_the_caller_cannot_choose_the_name() {
        let trusted = ["10.0.0.1", "10.0.0.2"].map(|address| address.parse().unwrap());
        let of = |peer: &str, values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(FORWARDED_FOR, axum::http::HeaderValue::from_static(value));
            }
            caller(&trusted, peer.parse().unwrap(), &headers).ip().to_string()
        };
        assert_eq!(of("192.0.2.7:1", &["198.51.100.9"]), "192.0.2.7", "the peer is not a proxy");
        assert_eq!(of("10.0.0.1:1", &["198.51.100.9"]), "198.51.100.9");
        assert_eq!(of("[::ffff:10.0.0.1]:1", &["198.51.100.9"]), "198.51.100.9");
        assert_eq!(
            of("10.0.0.1:1", &["127.0.0.1, 198.51.100.9, 10.0.0.2"]),
            "198.51.100.9",
            "a forged start"
        );
        assert_eq!(of("10.0.0.1:1", &["127.0.0.1", "198.51.100.9"]), "198.51.100.9", "a forged header");
        assert_eq!(of("10.0.0.1:1", &["198.51.100.9, unknown"]), "10.0.0.1");
        assert_eq!(of("10.0.0.1:1", &[]), "10.0.0.1");
    }
}

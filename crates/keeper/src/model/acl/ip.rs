//! The scheme `ip`: an address, or a network as `address/bits`.

use std::net::{IpAddr, Ipv4Addr};

/// Parses an address or a network; returns the address and the number of significant bits.
fn network(expression: &str) -> Option<(IpAddr, u32)> {
    let (address, bits) = match expression.split_once('/') {
        Some((address, bits)) => (address, Some(bits.parse::<u32>().ok()?)),
        None => (expression, None),
    };
    let address = parse(address)?;
    let width = width(address);
    let bits = bits.unwrap_or(width);
    (bits <= width).then_some((address, bits))
}

/// As in ZooKeeper, leading zeros are allowed and do not mean octal numbers.
fn parse(address: &str) -> Option<IpAddr> {
    if address.contains(':') {
        return address.parse().ok();
    }
    let mut bytes = [0; 4];
    let mut parts = address.split('.');
    for byte in &mut bytes {
        *byte = parts.next()?.parse().ok()?;
    }
    parts.next().is_none().then(|| IpAddr::V4(Ipv4Addr::from(bytes)))
}

fn width(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(_) => Ipv4Addr::BITS,
        IpAddr::V6(_) => std::net::Ipv6Addr::BITS,
    }
}

/// Returns whether an ACL can contain this expression.
pub(super) fn is_valid(expression: &str) -> bool {
    network(expression).is_some()
}

/// Returns whether the address is in the network.
pub(super) fn matches(peer: IpAddr, expression: &str) -> bool {
    let Some((address, bits)) = network(expression) else { return false };
    let differing = match (peer, address) {
        (IpAddr::V4(peer), IpAddr::V4(address)) => (peer.to_bits() ^ address.to_bits()).leading_zeros(),
        (IpAddr::V6(peer), IpAddr::V6(address)) => (peer.to_bits() ^ address.to_bits()).leading_zeros(),
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => return false,
    };
    differing >= bits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn networks_match_their_addresses() {
        for (address, expression) in [
            ("10.1.2.3", "10.1.2.3"),
            ("10.1.2.3", "10.1.2.3/32"),
            ("10.1.2.3", "10.1.0.0/16"),
            ("10.1.2.3", "0.0.0.0/0"),
            ("10.1.2.3", "10.1.2.2/31"),
            ("::1", "::1"),
            ("fe80::1", "fe80::/10"),
        ] {
            assert!(matches(peer(address), expression), "{address} in {expression}");
        }
        for (address, expression) in [
            ("10.1.2.3", "10.1.2.4"),
            ("10.2.2.3", "10.1.0.0/16"),
            ("10.1.2.3", "10.1.2.0/32"),
            ("10.1.2.3", "nowhere"),
            ("10.1.2.3", "::/0"),
            ("::1", "0.0.0.0/0"),
        ] {
            assert!(!matches(peer(address), expression), "{address} not in {expression}");
        }
    }

    #[test]
    fn invalid_networks_are_rejected() {
        for bad in [
            "",
            "10.1.2",
            "10.1.2.3.4",
            "256.1.1.1",
            "10.1.2.3/33",
            "10.1.2.3/-1",
            "10.1.2.3/",
            "::1/129",
            "x",
        ] {
            assert!(!is_valid(bad), "{bad:?}");
        }
    }
}

//! Limits the open connections of each address, so that one machine cannot use up the connections of all others.
//!
//! An IPv6 address stands for its /64 network, because one machine has all addresses of its network.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The limit of one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PerAddress {
    pub(crate) most: usize,
    /// Whether it also applies to this machine, on which a proxy may connect for many callers.
    pub(crate) loopback: bool,
}

/// A handle, cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Addresses {
    limit: PerAddress,
    /// Has at most as many addresses as there are connections.
    open: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// An open connection of an address.
#[derive(Debug)]
pub(super) struct Place {
    addresses: Addresses,
    of: IpAddr,
}

impl Addresses {
    pub(super) fn new(limit: PerAddress) -> Self {
        Self { limit, open: Arc::default() }
    }

    /// Returns `None` if the address has too many open connections.
    pub(super) fn enter(&self, address: IpAddr) -> Option<Place> {
        let of = network(address);
        let mut open = self.open();
        let connections = open.entry(of).or_default();
        let is_limited = self.limit.loopback || !of.is_loopback();
        if is_limited && *connections >= self.limit.most {
            return None;
        }
        *connections += 1;
        Some(Place { addresses: self.clone(), of })
    }

    fn open(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        // The counts are valid at every moment.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.addresses.open();
        if let Some(connections) = open.get_mut(&self.of) {
            *connections -= 1;
            if *connections == 0 {
                open.remove(&self.of);
            }
        }
    }
}

fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        address @ (IpAddr::V4(_) | IpAddr::V6(_)) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(addresses: &Addresses, address: &str) -> Vec<Place> {
        let address = address.parse().unwrap();
        std::iter::from_fn(|| addresses.enter(address)).take(10).collect()
    }

    #[test]
    fn one_address_has_a_share_of_the_connections_and_a_proxy_on_this_machine_has_all() {
        let addresses = Addresses::new(PerAddress { most: 2, loopback: false });
        let greedy = open(&addresses, "10.0.0.7");
        assert_eq!(greedy.len(), 2);
        assert_eq!(open(&addresses, "::ffff:10.0.0.7").len(), 0, "the same address");
        let _other = open(&addresses, "10.0.0.8");
        assert_eq!(_other.len(), 2);
        drop(greedy);
        assert_eq!(open(&addresses, "10.0.0.7").len(), 2);
        for local in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(open(&addresses, local).len(), 10, "{local}");
            let strict = Addresses::new(PerAddress { most: 2, loopback: true });
            assert_eq!(open(&strict, local).len(), 2, "{local}");
        }
    }

    #[test]
    fn a_machine_does_not_multiply_its_share_by_the_addresses_of_its_network() {
        let addresses = Addresses::new(PerAddress { most: 2, loopback: false });
        let _held = [open(&addresses, "2001:db8::1"), open(&addresses, "2001:db8::2")];
        assert_eq!(_held.each_ref().map(Vec::len), [2, 0]);
        assert_eq!(open(&addresses, "2001:db8:0:1::1").len(), 2);
    }

    #[test]
    fn addresses_without_connections_are_forgotten() {
        let addresses = Addresses::new(PerAddress { most: 2, loopback: false });
        drop(open(&addresses, "10.0.0.7"));
        assert!(addresses.open().is_empty());
    }
}

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// Below those that systems give to outgoing connections: from 32768 on, where one of another test could take it meanwhile.
const PORTS: std::ops::Range<u64> = 10_000..32_000;

/// An address of this machine where nobody listens until who asked for it does.
///
/// # Panics
///
/// When every port of a hundred is taken.
pub fn free_address() -> SocketAddr {
    // The standard library gives no other randomness; tests in many processes ask at once.
    let draw =
        || PORTS.start + RandomState::new().build_hasher().finish() % (PORTS.end - PORTS.start);
    let ports = std::iter::repeat_with(draw).filter_map(|port| u16::try_from(port).ok());
    let mut addresses = ports.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    addresses
        .by_ref()
        .take(100)
        .find(|address| TcpListener::bind(address).is_ok())
        .expect("a free port")
}

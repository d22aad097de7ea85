//! A local installation: a broker and the services, each a process of its own, for `concord up`, the demonstration,
//! the benchmark and the tests.
//!
//! # Nothing is left running
//!
//! Every process dies with the value that stands for it, and, on Linux, with the process that started it even when that
//! one is killed with SIGKILL: children are started through `setpriv --pdeathsig` of util-linux, because setting the
//! death signal from Rust would need `unsafe`. Where there is no such `setpriv`, children of a killed parent stay.

mod discover;
mod error;
mod installation;
mod nats_server;
mod plan;
mod process;

pub use discover::{Instance, instances};
pub use error::Error;
pub use installation::Installation;
pub use nats_server::{MONITORING, NatsServer};
pub use plan::{Plan, Progress, SERVICES, Tls, binary_name};
pub use process::{Process, Program};

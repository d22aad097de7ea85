//! Credentials of NATS in operator mode. An *operator* signs *accounts*, an account signs *users*; a server that knows the
//! operator's token knows all of them. Each tenant of an installation has an account of its own.
//!
//! [`Directory`] holds the keys and says what was issued to whom. It does not speak to a server, has no clock, and does not know
//! what anybody may do: time and permissions are given to it.

mod directory;
mod error;
mod file;
mod holder;
mod issued;
mod server_config;
mod token;

pub use directory::{Directory, Issue, Resolver, Which};
pub use error::Error;
pub use file::CredentialsFile;
pub use holder::Holder;
pub use issued::Issued;

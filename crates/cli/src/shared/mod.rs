//! What the verbs of `concord` and `concord-lab` have in common: arguments, the connection, output, failures, and reading
//! what is stored.

pub(crate) mod archive_reader;
pub mod args;
pub(crate) mod audit_feed;
pub(crate) mod broker_api;
pub mod case_file;
pub(crate) mod circumstances;
pub mod connection;
pub(crate) mod debate_file;
pub(crate) mod event_source;
pub mod failure;
pub(crate) mod flags;
pub(crate) mod held_back;
pub(crate) mod input;
pub mod output;
pub(crate) mod own_folder;
pub mod program;
pub(crate) mod put;
pub(crate) mod rights;
pub mod send;
pub mod sign;
pub(crate) mod since;
pub(crate) mod speaker;
pub(crate) mod stillness;
pub(crate) mod stream_reader;

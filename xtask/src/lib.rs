//! Tasks of the repository: the generator of JSON Schemas, of the AsyncAPI document and of the reference pages.
//!
//! [`generate`] lists, compares and writes every generated file; [`schema`] and [`configuration`] make their contents from the
//! types and tables of the crates. Services do not contain any of this.

pub mod command;
pub mod configuration;
pub mod generate;
pub mod schema;

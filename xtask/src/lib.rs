//! Tasks of the repository: JSON Schemas, AsyncAPI and reference pages, made from the types and tables of the crates.

pub mod schema;

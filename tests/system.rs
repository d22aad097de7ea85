//! Tests of the whole, in one program: it is linked once, and no suite waits for the last test of another.

mod archive;
mod audit;
mod backup;
mod bad_input;
mod clients;
mod demo;
mod dialects;
mod examples;
mod exchange;
mod generated;
mod gone_events;
mod hosted;
mod hygiene;
mod kill;
mod ladder;
mod long_lives;
mod notifications;
mod permissions;
mod questions;
mod recording;
mod storage;
mod stored_case;
mod tasks;
mod together;
mod tracing;

#![doc = include_str!("../README.md")]
//!
//! [`Agent::builder`] names it, [`Builder::on`] says what it does with a message, [`Builder::connect`] makes it listen.
//! A [`Message`] is the envelope of the protocol; its payload is read by [`Message::payload`] as one of the types of
//! [`concord_wire::payload`].

mod agent;
mod alert;
mod batch;
mod builder;
mod case;
mod closing;
mod deduplication;
mod encoding;
mod error;
mod group;
mod heartbeat;
mod inbox;
mod large_payload;
mod memory;
mod memory_hold;
mod pending_requests;
mod pulling;
mod reply;
mod waking;

pub use agent::Agent;
pub use alert::Raised;
pub use builder::Builder;
pub use case::Window;
pub use concord_wire::payload::{self, AgentStatus, Card, CardAction, Skill};
pub use concord_wire::{
    self as protocol, AgentId, CaseId, Envelope as Message, ErrorCode, MessageType, Recipient,
};
pub use error::Error;
pub use memory::{Kept, Memory, Recalled};
pub use waking::Wake;

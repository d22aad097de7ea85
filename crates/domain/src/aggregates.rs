//! The aggregates: one folder for each state machine, with its state, its decisions, how an event
//! changes the state, and the effects of its events.

pub mod agent;
pub mod alert;
pub mod answerable;
pub mod archive;
pub mod board;
pub mod case;
pub mod commitment;
pub mod deadline;
pub mod debate;
pub mod detection;
pub mod head;
mod heard_before;
pub mod impact;
pub mod memory;
pub mod opener;
pub mod person;
pub mod policy;
pub mod precedent;
pub mod question;
pub mod request;
pub mod review_queue;
pub mod rotation;
pub mod synthesis;
pub mod table;
pub mod task;
pub mod track_record;
pub mod watch;
pub mod worklist;

//! One folder for each state machine: its state, what it decides, how an event changes its state and what follows from an event.

pub mod agent;
pub mod case;
pub mod deadline;
pub mod debate;
pub mod detection;
pub mod precedent;
pub mod request;
pub mod review_queue;
pub mod table;
pub mod track_record;

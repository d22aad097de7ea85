//! What holds over stored events and messages: the invariants, and rebuilding and recounting.

pub mod audit;
pub mod evidence;
pub mod replay;

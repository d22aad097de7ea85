//! Real processes, killed and started again: nothing is lost, nothing is done twice, and every case comes to the same
//! decision as if nothing had happened.

mod agents;
mod cases;
mod deadlines;
mod drain;
mod random;
mod reconnect;
mod storm;

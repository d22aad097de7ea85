//! Real processes, killed and started again: nothing is lost, nothing is done twice, and every case comes to the same
//! decision as if nothing had happened.

mod agents;
mod blows;
mod cases;
mod deadlines;
mod drain;
mod facts;
mod ladder;
mod parties;
mod random;
mod reconnect;
mod storm;

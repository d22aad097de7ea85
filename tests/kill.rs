//! Real processes are killed and started again: nothing is lost, nothing is done twice, and every case comes to the same
//! decision as without the kills.

mod agents;
mod behind;
mod blows;
mod brokers;
mod cases;
pub(crate) mod cluster;
mod deadlines;
mod disk;
mod drain;
mod events;
mod followers;
mod in_time;
mod ladder;
mod large;
mod migrated;
mod nodes;
mod order;
mod parties;
mod reconnect;
pub(crate) mod replicas;
mod set_back;
mod storm;
mod upgrade;

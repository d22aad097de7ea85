//! Bad input, on a real broker with real services: whatever a sender writes, it is told what is wrong and where, the
//! original is kept where it could not be used, and the services go on.

mod answers;
mod findings;
mod form;
mod identity;
mod ladder;
mod opening;
mod poison;
mod stage;
mod wire;

//! Bad input, on a real broker with real services. Whatever a sender writes, it is told what is wrong and where; a message
//! that could not be used is kept; and the services go on.

mod answers;
mod bounds;
mod findings;
mod form;
mod group;
mod headers;
mod identity;
mod ladder;
mod mutants;
mod opening;
mod poison;
mod stage;
mod unkept;
mod wire;

//! The recognisers of the panel, one table for each reader.
//!
//! The readers are meant to differ. [`strict`] asks for the wording that defines a clause; the
//! tables of the advisers know fewer clause types and read them more widely or more narrowly, as
//! their work demands; [`confirm`] is what any of them accepts when a colleague shows a sentence.

pub mod confirm;
pub mod executive;
pub mod negotiation;
pub mod risk;
pub mod strict;

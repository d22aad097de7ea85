//! The sample panel of Concord: four readers of contracts that work by rules.
//!
//! Each reader recognises clauses by word patterns ([`rules`]), weighs them ([`roles`]) and writes a
//! [`finding`]. Because the readers define their clauses differently and weigh them differently,
//! they disagree about real contracts, and in a [`discussion`] they give way only to a sentence they
//! had missed. They need no network and no model, and the same input always gives the same answer.

pub mod clause;
pub mod discussion;
pub mod facts;
pub mod finding;
pub mod matter;
pub mod numbers;
pub mod pattern;
pub mod places;
pub mod profile;
pub mod protocol;
pub mod question;
pub mod quotes;
pub mod reading;
pub mod roles;
pub mod rules;
pub mod severity;
pub mod text;

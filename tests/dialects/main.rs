//! Agents that speak nothing but a dialect, on a real broker with real services: each takes part in a whole case, and is
//! told in its own words what is wrong.

mod again;
mod cases;
mod errors;
mod speech;
mod written;

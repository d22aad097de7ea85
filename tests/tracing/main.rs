//! One case is one trace, over all services and agents; and what becomes of a case when the collector fails.

mod case;
mod collector;
mod failing;
mod hosted;
mod secure;

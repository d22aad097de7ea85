//! The invariants as checkers over stored events; see below.

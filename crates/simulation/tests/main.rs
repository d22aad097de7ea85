//! Tests of whole worlds, in one program: it is linked once, and no processor waits for a test that is alone in its program.

mod command;
mod mutants;
mod seeds;

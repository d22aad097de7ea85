//! Tests of models in this process and elsewhere, in one program.

mod made_up;
mod model;
mod server;

//! The rules of the house, held by tests: sizes, layers, words, dependencies, and documents that name what exists.

mod dependencies;
mod documents;
mod layers;
mod sizes;
mod source;
mod words;

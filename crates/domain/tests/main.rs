//! What is proven of the domain from outside, in one program.

mod credibility_golden;
mod purity;

//! The archive in a store that speaks S3: what is kept, what is refused and how it is said, whole journeys, crashes.

mod journey;
mod protocol;
mod refusals;

//! How well agents help each other: the success metrics of the specification of coordination, counted from what is stored.
//!
//! [`Follow`] is given what agents say ([`Said`]) and whom that woke ([`Follow::woken`]), in the order in which it was stored, and
//! says what counts ([`Counted`]); a [`Tally`] adds that up to a [`Report`]. The specification names five metrics and defines none:
//!
//! - **Messages through the lead**: of the messages between agents, those that a lead sends or receives. The coordinator is one, and
//!   whoever is named. What is said to or by another service is between no agents, and registration is not about any work.
//! - **Response time of peer help**: from a `peer_request`, `group_query` or `collaboration_invite` of one peer to the first answer that
//!   reaches it. An answer names the message in `reply_to`, or else in `correlation_id`, comes from somebody else, and is neither a further
//!   question nor a receipt nor an error. One that declines is none.
//! - **Matching accuracy**: of the agents that a match woke (`semantic:`, `keyword:`) and that then answered or declined, those that
//!   answered. An agent declines by an answer with `"accepted": false` in its payload, in the payload's `result`, or in the metadata.
//!   The first word of an agent about a message counts.
//! - **False wake-ups**: of all agents that were woken, for whatever reason, and then answered or declined, those that declined.
//! - **Collaboration events a session**: `peer_request`, `collaboration_invite`, `expertise_offer`, each agent's answer to one of the asks
//!   above, and a `group_query` once somebody answers it; all between peers. A session is a conversation as
//!   [`conversation_of`](crate::activation::conversation::conversation_of) tells them apart: the case, or the thread outside one (the
//!   specification's `conversation_id`). One in which agents said anything counts.
//!
//! Whoever says nothing within the window is counted apart, as is what still waits. Everything that is remembered is bounded
//! ([`Limits`]); what has no more room is treated as if its window were over. No clock: times are those at which the broker stored.

mod classify;
mod tally;
mod tracker;

pub use classify::{Ask, Said};
pub use tally::{Feedbacks, Measure, PeerHelp, Report, TARGETS, Tally, Waiting};
pub use tracker::{Counted, Feedback, Follow, LEAD, Limits, What, leads_by_card};

#[cfg(test)]
mod tests;

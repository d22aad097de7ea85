//! Metrics of coordination: how well agents help each other, counted from stored messages.
//!
//! A [`Tracker`] takes the messages of agents ([`Tracker::message`]) and the decisions which agents
//! they wake ([`Tracker::woken`]) in the order in which they were stored, and returns what counts
//! ([`Counted`]). A [`Tally`] adds that up to a [`Report`]. The specification names five metrics
//! and does not define them:
//!
//! - **Messages through the lead**: of the messages between agents, those that a lead sends or receives. The coordinator is a
//!   lead, and other leads are named. Messages to or from another service do not count, nor does
//!   registration, nor what the coordinator says about how a question to the group ended: the answers themselves count.
//! - **Response time of peer help**: from a `peer_request`, `group_query` or `collaboration_invite` of one peer to the first answer that
//!   reaches it. An answer names the message in `reply_to`, or else in `correlation_id`, comes from somebody else, and is neither a further
//!   question nor a receipt nor an error. One that declines is none.
//! - **Matching accuracy**: of the agents that a match woke (`semantic:`, `keyword:`) and that then answered or declined, those that
//!   answered. An agent declines by an answer with `"accepted": false` in its payload, in the payload's `result`, or in the metadata.
//!   The first reaction of an agent to a message counts.
//! - **False wake-ups**: of all agents that were woken, for whatever reason, and then answered or declined, those that declined.
//! - **Collaboration events a session**: `peer_request`, `collaboration_invite`, `expertise_offer`, each agent's answer to one of the asks
//!   above, and a `group_query` once somebody answers it; all between peers. A session is a conversation as
//!   [`conversation_of`](crate::activation::conversation::conversation_of) tells them apart: the case, or the thread outside one (the
//!   specification's `conversation_id`). One in which agents said anything counts.
//!
//! Agents that do not answer within the window are counted separately, as is what may still be
//! answered. Memory is bounded ([`Limits`]): a message that finds no room is treated as if its
//! window were over. Times are those at which the broker stored the messages.

mod classify;
mod open_messages;
mod tally;
mod tracker;

pub use classify::{Ask, TrackedMessage};
pub use tally::{Feedbacks, Measure, PeerHelp, Report, TARGETS, Tally, Waiting};
pub use tracker::{Countable, Counted, Feedback, LEAD, Limits, Tracker, leads_by_card};

#[cfg(test)]
mod tests;

//! Whether a case can be archived.

use std::collections::BTreeMap;

use concord_archive::ArchivedMessage;
use concord_domain::aggregates::case::{CaseMachine, everyone_in};
use concord_domain::aggregates::debate::DebateMachine;
use concord_domain::aggregates::impact::ImpactMachine;
use concord_events::{Aggregate, EventMeta};
use concord_wire::subject::{Service, Subject, SubjectSpace};
use concord_wire::{AgentId, Recipient};

use super::{Bounds, Gathered, Id, rebuilt};

impl Gathered {
    /// Leaves in the streams what somebody who is not in the case has just said in it, and what they have asked there as long as it is
    /// open, like what is asked in no case. Nobody waits for it: a request may be open for a month, and they can go on speaking.
    pub(super) fn leave(
        &mut self,
        asked: BTreeMap<Id, AgentId>,
        subjects: &SubjectSpace,
        bounds: &Bounds,
    ) {
        let case = rebuilt::<CaseMachine>(self.first_of(Aggregate::Case));
        let opened = case.as_ref().and_then(|case| case.state.opened.as_ref());
        self.inside = opened.map_or_else(Vec::new, |opened| everyone_in(opened));
        let others = asked
            .into_iter()
            .filter(|(_, asker)| !self.inside.contains(asker));
        self.of_others = others.map(|(id, _)| id).collect();
        let (inside, of_others) = (&self.inside, &self.of_others);
        self.messages
            .retain(|message| bounds.covers(message) || is_said_inside(message, inside, subjects));
        self.events.retain(|id, events| {
            let is_done =
                || has_no_deadline(events) && events.iter().all(|event| bounds.covers(event));
            !of_others.contains(id) || is_done()
        });
    }

    /// What waits in the streams for those in the case who are away: what they and the services have said to each other, and its events.
    /// With anything else somebody who is not in it could keep it there, whatever it is: what they say and ask, what they are answered,
    /// and what the adapter tells others for that. What services have not read yet waits for them, whoever said it.
    fn waiting<'a>(
        &'a self,
        subjects: &'a SubjectSpace,
    ) -> impl Iterator<Item = &'a ArchivedMessage> {
        // A deadline is old when what it belongs to is.
        let is_own = |id: &Id| id.0 != Aggregate::Deadline && !self.of_others.contains(id);
        let events = self.events.iter().filter(move |(id, _)| is_own(id));
        let messages = self.messages.iter();
        let messages = messages.filter(|message| is_said_inside(message, &self.inside, subjects));
        messages.chain(events.flat_map(|(_, events)| events))
    }

    /// Whether nothing of the case is open, and nothing was stored too late.
    pub(super) fn is_finished(&self, subjects: &SubjectSpace, bounds: &Bounds) -> bool {
        let is_old = |message: &ArchivedMessage| message.at <= bounds.before;
        let case = rebuilt::<CaseMachine>(self.first_of(Aggregate::Case));
        let is_over = case.is_some_and(|case| case.state.is_over());
        let debates_ended = self
            .of(Aggregate::Debate)
            .filter(|(_, events)| !events.is_empty())
            .all(|(_, events)| {
                rebuilt::<DebateMachine>(events).is_some_and(|one| one.state.outcome.is_some())
            });
        // What a run of analyses waits for are tasks, which belong to no case, and neither do their deadlines.
        let analyses = rebuilt::<ImpactMachine>(self.first_of(Aggregate::Impact));
        let awaits_none = analyses.is_some_and(|analyses| !analyses.state.is_awaiting());
        is_over
            && debates_ended
            && awaits_none
            && self.all().all(|message| bounds.covers(message))
            && self.waiting(subjects).all(is_old)
            && self.events.values().all(|events| has_no_deadline(events))
    }
}

impl Bounds {
    /// Whether it is not too late, by its place.
    fn covers(&self, message: &ArchivedMessage) -> bool {
        let end = self.ends.get(&message.stream).copied();
        message.sequence <= end.unwrap_or(u64::MAX)
    }
}

/// Whether a message is from somebody in the case or a service, and for such a one or for all.
fn is_said_inside(message: &ArchivedMessage, inside: &[AgentId], subjects: &SubjectSpace) -> bool {
    let is_inside = |agent: &AgentId| match Service::parse(agent.as_str()) {
        Ok(service) => service != Service::AgentAdapter,
        Err(_) => inside.contains(agent),
    };
    let Ok(Subject::Message { from, to, .. }) = subjects.parse(&message.subject) else {
        return false;
    };
    let is_heard_inside = match &to {
        Recipient::Agent(to) => is_inside(to),
        Recipient::All | Recipient::Any => true,
    };
    is_inside(&from) && is_heard_inside
}

/// Whether no deadline is open after the last event; false where it cannot be read.
fn has_no_deadline(events: &[ArchivedMessage]) -> bool {
    let last = events.iter().rev().find_map(|event| {
        let meta = EventMeta::decode(&event.payload);
        (!matches!(meta, Err(concord_events::Error::NonEvent))).then_some(meta)
    });
    last.is_none_or(|meta| meta.is_ok_and(|meta| meta.deadlines.is_empty()))
}

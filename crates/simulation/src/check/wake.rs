//! About every message that may concern others it is decided once whom it wakes, and two agents that answer each other without
//! end wake each other no longer.

use std::collections::BTreeMap;

use concord_domain::activation::conversation::conversation_of;
use concord_events::topology::may_wake;
use concord_events::{LoopBroken, WakeEvent};
use concord_wire::subject::{Service, Subject};
use concord_wire::{AgentId, MessageId, Timestamp, Token};

use super::archive::Archive;

pub(super) fn check(archive: &Archive, violations: &mut Vec<String>) {
    let mut decided: BTreeMap<(&Token, &MessageId), usize> = BTreeMap::new();
    for records in archive.wakes.values() {
        let mut paused = Paused::default();
        for record in records {
            let broken = match &record.event {
                WakeEvent::LoopBroken(broken) => Some(broken),
                WakeEvent::Decided(decision) => {
                    let said = &decision.said;
                    *decided
                        .entry((&record.meta.id, &said.message_id))
                        .or_default() += 1;
                    for one in decision
                        .woken
                        .iter()
                        .filter(|one| paused.holds(&said.from, &one.agent_id, said.at))
                    {
                        violations.push(format!(
                            "wake: {} wakes {} at {} although the two are paused",
                            said.message_id, one.agent_id, record.sequence
                        ));
                    }
                    decision.loop_broken.as_ref()
                }
            };
            if let Some(broken) = broken {
                if paused.holds(&broken.from, &broken.to, broken.at) {
                    violations.push(format!(
                        "wake: a loop is broken twice at {}",
                        record.sequence
                    ));
                }
                paused.0.push(broken);
            }
        }
    }
    for message in &archive.messages {
        let (Some(Subject::Message { from, to, .. }), Some(envelope)) =
            (&message.subject, &message.envelope)
        else {
            continue;
        };
        if !may_wake(&envelope.message_type, to) || Service::parse(from.as_str()).is_ok() {
            continue;
        }
        let times = decided
            .get(&(&conversation_of(envelope), &envelope.message_id))
            .copied()
            .unwrap_or(0);
        // A question in terms that cannot be used is refused, and wakes nobody.
        let is_refused = archive.dead.contains_key(&message.sequence) && times == 0;
        if times != 1 && !is_refused {
            violations.push(format!(
                "wake: it was decided {times} times whom {} wakes",
                envelope.message_id
            ));
        }
    }
}

/// Messages that have woken somebody, and loops that were broken.
pub(super) fn counts(archive: &Archive) -> (u64, u64) {
    let (mut wakes, mut loops) = (0, 0);
    for record in archive.wakes.values().flatten() {
        match &record.event {
            WakeEvent::Decided(decided) => {
                wakes += u64::from(!decided.woken.is_empty());
                loops += u64::from(decided.loop_broken.is_some());
            }
            WakeEvent::LoopBroken(_) => loops += 1,
        }
    }
    (wakes, loops)
}

/// The loops that were broken so far.
#[derive(Default)]
struct Paused<'a>(Vec<&'a LoopBroken>);

impl Paused<'_> {
    fn holds(&self, one: &AgentId, other: &AgentId, at: Timestamp) -> bool {
        let between = |broken: &LoopBroken| {
            (broken.from == *one && broken.to == *other)
                || (broken.from == *other && broken.to == *one)
        };
        self.0
            .iter()
            .any(|broken| between(broken) && at < broken.until)
    }
}

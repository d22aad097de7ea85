//! Alerts: everybody is told of each exactly once, whoever is killed; who may not alert tells nobody, and no alert of who may is lost. An
//! alert of a rule follows from each version of a topic that fulfils it, and from no other.

use std::collections::{BTreeMap, BTreeSet};

use concord_coordinator::route::shared::{SharedInput, from_message};
use concord_domain::aggregates::alert::{AlertInput, AlertMachine, FiredAlert, ReceivedReport};
use concord_domain::aggregates::case::{CaseMachine, FLAGS_MAX};
use concord_domain::aggregates::person::{Act, Authority};
use concord_domain::aggregates::watch::{RegimeChange, WatchInput, WatchMachine};
use concord_domain::machine::Versioned;
use concord_domain::rules::alerting::{alert_id, alert_of};
use concord_events::{
    AlertEvent, AlertRaised, CaseEvent, DeadlineEvent, MemoryEvent, StoredEvent, WatchEvent,
};
use concord_wire::payload::{Alert, REGIME_CHANGE, RegimeTerms};
use concord_wire::subject::Service;
use concord_wire::{Envelope, MessageType, Recipient, Token};

use super::super::again::decided_again;
use super::super::archive::Archive;
use super::super::authority::earlier;
use crate::agents::operators::Verb;
use crate::process::SHARED;

pub(super) fn check(archive: &Archive, violations: &mut Vec<String>) {
    decided_again::<AlertMachine>(&archive.alerts, violations, |record| said(archive, record));
    let told = told(archive);
    for (id, records) in &archive.alerts {
        let times = told.get(id).copied().unwrap_or_default();
        if times != 1 {
            violations.push(format!("alerts: everybody is told {times} times of {id}"));
        }
        for record in records {
            let AlertEvent::Raised(raised) = &record.event else {
                continue;
            };
            if raised.alert.source.is_some() {
                continue;
            }
            if !may_have(archive, record.sequence, raised) {
                let who = &raised.heard.agent_id;
                violations.push(format!("alerts: {who} has raised {id} and may not alert"));
            }
        }
    }
    by_rules(archive, violations);
    for id in told.keys().filter(|id| !archive.alerts.contains_key(*id)) {
        violations.push(format!(
            "alerts: everybody is told of {id}, which nobody has raised"
        ));
    }
    for message in &archive.urgent {
        if let Some((id, _)) = message.envelope.as_ref().and_then(alert)
            && !archive.dead_urgent.contains(&message.sequence)
            && !archive.alerts.contains_key(&id)
        {
            violations.push(format!("alerts: {id} is neither raised nor refused"));
        }
    }
}

/// Each rule that a version of a topic fulfils has raised one alert, and none was raised by a rule without.
fn by_rules(archive: &Archive, violations: &mut Vec<String>) {
    let ordered = |record: &StoredEvent<WatchEvent>| -> Vec<WatchInput> {
        let operation = archive.operated.get(&record.meta.cause);
        let ordered = operation.and_then(|operation| match &operation.verb {
            Verb::Watch(input) => Some(input.clone()),
            _ => None,
        });
        ordered.into_iter().collect()
    };
    decided_again::<WatchMachine>(&archive.watches, violations, |record| match &record.event {
        WatchEvent::RulesPut(_) => ordered(record),
        WatchEvent::RegimeChanged(_) => changed(archive, record),
    });
    followed(archive, violations);
    let fired: BTreeSet<Token> = fired(archive).map(|(id, _)| id).collect();
    let is_of_rule = |records: &Vec<StoredEvent<AlertEvent>>| {
        records.iter().any(|record| {
            matches!(&record.event, AlertEvent::Raised(raised) if raised.alert.source.is_some())
        })
    };
    let raised = archive.alerts.iter();
    let raised = raised.filter(|(_, records)| is_of_rule(records));
    let raised: BTreeSet<Token> = raised.map(|(id, _)| id.clone()).collect();
    for id in fired.difference(&raised) {
        violations.push(format!(
            "alerts: a rule is fulfilled, and {id} is not raised"
        ));
    }
    for id in raised.difference(&fired) {
        violations.push(format!(
            "alerts: {id} is raised by a rule that is not fulfilled"
        ));
    }
}

/// The alert that a change of regime follows from.
fn changed(archive: &Archive, record: &StoredEvent<WatchEvent>) -> Vec<WatchInput> {
    let raised = archive.alerts.values().flatten();
    let mut raised = raised.filter(|alert| alert.meta.event_id == record.meta.cause);
    let cause = raised.find_map(regime_change);
    let input = cause.and_then(|(alert, raised)| {
        Some(WatchInput::RegimeChange(Box::new(RegimeChange {
            regime: raised.alert.new_regime.clone()?,
            alert: alert.meta.id.clone(),
            raised_at: alert.meta.at,
            sequence: alert.sequence,
        })))
    });
    input.into_iter().collect()
}

/// What follows from the rules that versions of topics have fulfilled.
fn fired(archive: &Archive) -> impl Iterator<Item = (Token, AlertInput)> {
    archive.memories.values().flatten().flat_map(|record| {
        let MemoryEvent::Put(put) = &record.event;
        let fired = put.fired.iter().filter(|fired| !fired.withheld);
        fired.map(|fired| {
            let alert = FiredAlert {
                heard: put.heard.clone(),
                priority: fired.priority,
                alert: alert_of(put, fired),
                registered: Vec::new(),
                terms: None,
            };
            (alert_id(put, fired), AlertInput::Fire(Box::new(alert)))
        })
    })
}

/// How often the coordinator tells everybody of each alert.
fn told(archive: &Archive) -> BTreeMap<Token, u32> {
    let mut told = BTreeMap::new();
    let normal = archive.messages.iter();
    let normal = normal.filter_map(|message| message.envelope.as_ref());
    for envelope in said_urgently(archive).chain(normal) {
        let alert = envelope
            .payload::<Alert>()
            .ok()
            .and_then(|alert| alert.alert);
        if is_of_coordinator(envelope)
            && envelope.to_agent == Recipient::All
            && envelope.message_type == MessageType::Alert
            && let Some(id) = alert
        {
            *told.entry(id).or_default() += 1;
        }
    }
    told
}

fn said_urgently(archive: &Archive) -> impl Iterator<Item = &Envelope> {
    archive
        .urgent
        .iter()
        .filter_map(|message| message.envelope.as_ref())
}

fn is_of_coordinator(envelope: &Envelope) -> bool {
    envelope.from_agent == Service::Coordinator.agent_id()
}

/// What an alert to the coordinator or to everybody asks for.
fn alert(envelope: &Envelope) -> Option<(Token, AlertInput)> {
    let to_coordinator = Recipient::Agent(Service::Coordinator.agent_id());
    let is_heard = [to_coordinator, Recipient::All].contains(&envelope.to_agent);
    if is_of_coordinator(envelope) || !is_heard {
        return None;
    }
    match from_message(envelope, SHARED).ok()?? {
        SharedInput::Alert(id, input) => Some((id, input)),
        _ => None,
    }
}

/// The inputs that an event may follow from: what was said under its cause, with each right that its sender had until then.
fn said(archive: &Archive, record: &StoredEvent<AlertEvent>) -> Vec<AlertInput> {
    let raised = match &record.event {
        AlertEvent::Raised(raised) => raised,
        AlertEvent::Reported(_) => return reported(archive, record),
        AlertEvent::ReportMissed(_) => return elapsed(archive, record),
    };
    let terms = terms(archive, record.sequence);
    if raised.alert.source.is_some() {
        let of_rules = fired(archive).filter(|(id, _)| *id == record.meta.id);
        let with = |(_, input): (Token, AlertInput)| {
            terms.clone().into_iter().map(move |terms| {
                let mut input = input.clone();
                if let AlertInput::Fire(fired) = &mut input {
                    fired.registered.clone_from(&raised.told);
                    fired.terms = terms;
                }
                input
            })
        };
        return of_rules.flat_map(with).collect();
    }
    let senders: Vec<_> = senders_of(archive, record, raised);
    let circumstances = senders.iter().flat_map(|sender| {
        let with = move |terms: &Option<RegimeTerms>| (sender.clone(), terms.clone());
        terms.iter().map(with)
    });
    let circumstances: Vec<_> = circumstances.collect();
    let inputs = said_urgently(archive).filter_map(alert);
    let of_this = inputs.filter(|(id, _)| *id == record.meta.id);
    let with = |(_, input): (Token, AlertInput)| {
        circumstances
            .clone()
            .into_iter()
            .map(move |(sender, terms)| {
                let mut input = input.clone();
                if let AlertInput::Raise(received) = &mut input {
                    received.sender = sender;
                    received.terms = terms;
                    received.registered.clone_from(&raised.told);
                }
                input
            })
    };
    of_this.flat_map(with).collect()
}

fn senders_of(
    archive: &Archive,
    record: &StoredEvent<AlertEvent>,
    raised: &AlertRaised,
) -> Vec<Authority> {
    earlier(archive, record.sequence, &raised.heard.agent_id)
}

/// What followed from a change of regime at the times before.
fn terms(archive: &Archive, before: u64) -> Vec<Option<RegimeTerms>> {
    let mut known = vec![None];
    let events = archive.watches.values().flatten();
    for event in events.take_while(|event| event.sequence < before) {
        if let WatchEvent::RulesPut(put) = &event.event {
            // A world never takes its rules away.
            known.push(Some(put.rules.regime_change.clone()));
        }
    }
    known
}

/// What was said under the cause of a report, with each right that its sender had until then.
fn reported(archive: &Archive, record: &StoredEvent<AlertEvent>) -> Vec<AlertInput> {
    let said = archive.said_under(&record.meta.cause);
    let envelopes = said.filter_map(|message| message.envelope.as_ref());
    let inputs = envelopes.filter_map(|envelope| match from_message(envelope, SHARED).ok()?? {
        SharedInput::Alert(id, AlertInput::Report(received)) if id == record.meta.id => {
            Some(received)
        }
        _ => None,
    });
    let with = |received: Box<ReceivedReport>| {
        let senders = earlier(archive, record.sequence, &received.heard.agent_id);
        senders.into_iter().map(move |sender| {
            let mut received = received.clone();
            received.sender = sender;
            AlertInput::Report(received)
        })
    };
    inputs.flat_map(with).collect()
}

/// The deadline that a missed report follows from.
fn elapsed(archive: &Archive, record: &StoredEvent<AlertEvent>) -> Vec<AlertInput> {
    let cause = archive.events.get(&record.meta.cause);
    let elapsed = cause.and_then(|(_, sequence, bytes)| {
        let event = StoredEvent::<DeadlineEvent>::decode(bytes, *sequence).ok()?;
        Some(AlertInput::Elapsed(event.event.into_elapsed()))
    });
    elapsed.into_iter().collect()
}

/// Each change of regime that was told has flagged every case that was open then, and no other, and the last one stands.
fn followed(archive: &Archive, violations: &mut Vec<String>) {
    let mut last = None;
    for (id, records) in &archive.alerts {
        let Some((first, raised)) = records.first().and_then(regime_change) else {
            continue;
        };
        last = last.max(Some((first.sequence, raised.alert.new_regime.clone())));
        for (case, events) in &archive.cases {
            let flagged = events.iter().filter(|event| match &event.event {
                CaseEvent::Flagged(flagged) => flagged.flag.alert == *id,
                _ => false,
            });
            let flagged = flagged.count();
            let mut known = Versioned::<CaseMachine>::default();
            for event in events
                .iter()
                .take_while(|event| event.sequence < first.sequence)
            {
                known.apply(event.clone());
            }
            let mut is_open = known.state.opened.is_some() && !known.state.is_over();
            for event in events
                .iter()
                .skip_while(|event| event.sequence < first.sequence)
            {
                known.apply(event.clone());
                // What was over meanwhile needs no flag, also where something has made it go on.
                is_open &= !known.state.is_over();
            }
            is_open &= known.state.flags.len() < FLAGS_MAX;
            let is_begun = known.state.opened.is_some();
            if flagged > 1 || (is_open && flagged == 0) || (flagged > 0 && !is_begun) {
                violations.push(format!(
                    "alerts: {case} is flagged {flagged} times with {id}"
                ));
            }
        }
    }
    let events = archive.watches.values().flatten();
    let stands = events.rev().find_map(|event| match &event.event {
        WatchEvent::RegimeChanged(changed) => Some(changed.regime.clone()),
        WatchEvent::RulesPut(_) => None,
    });
    let last = last.and_then(|(_, regime)| regime);
    if stands != last {
        violations.push(format!(
            "alerts: the regime is {stands:?}, and the last alert has named {last:?}"
        ));
    }
}

fn regime_change(
    record: &StoredEvent<AlertEvent>,
) -> Option<(&StoredEvent<AlertEvent>, &AlertRaised)> {
    match &record.event {
        AlertEvent::Raised(raised) if raised.alert.event_type == REGIME_CHANGE => {
            Some((record, raised))
        }
        _ => None,
    }
}

fn may_have(archive: &Archive, before: u64, raised: &AlertRaised) -> bool {
    let who = &raised.heard.agent_id;
    let may = |sender: &Authority| sender.allow(who, &Act::Alert).is_ok();
    earlier(archive, before, who).iter().any(may)
}

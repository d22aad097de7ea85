//! Confirmations: each of a finding that counts, by another participant, once; and what a case says of a finding's confidence follows from
//! them, by arithmetic of its own. What a participant has noted counts before the findings are closed, and at no other time.

use std::collections::{BTreeMap, BTreeSet};

use concord_domain::aggregates::case::CaseMachine;
use concord_domain::machine::Versioned;
use concord_events::{CaseEvent, MemoryEvent, ReceivedFinding};

use super::archive::Archive;

pub(super) fn check(archive: &Archive, violations: &mut Vec<String>) {
    for (id, records) in &archive.cases {
        let mut known = Versioned::<CaseMachine>::default();
        let mut confirmed = BTreeSet::new();
        let mut doubts: BTreeMap<_, f64> = BTreeMap::new();
        let mut is_closed = false;
        for record in records {
            let at = record.sequence;
            match &record.event {
                CaseEvent::Confirmed(one) => {
                    let who = &one.heard.agent_id;
                    let findings = &known.state.findings;
                    let Some(finding) = found(findings, |given| {
                        (&given.message_id, &given.agent_id) == (&one.finding, &one.author)
                    }) else {
                        violations.push(format!(
                            "confirmations: {who} confirms at {at} what is no finding of {id}"
                        ));
                        continue;
                    };
                    if finding.agent_id == *who
                        || !confirmed.insert((one.finding.clone(), one.author.clone(), who.clone()))
                    {
                        violations.push(format!(
                            "confirmations: {who} confirms at {at} its own finding, or another again"
                        ));
                    }
                    let stated = 1.0 - finding.confidence;
                    let doubt = doubts
                        .entry((one.finding.clone(), one.author.clone()))
                        .or_insert(stated);
                    *doubt *= 1.0 - one.confidence / 2.0;
                    if (1.0 - *doubt - one.strengthened).abs() > 1e-5 {
                        let said = one.strengthened;
                        violations.push(format!(
                            "confirmations: a confidence of {said} at {at} is no sum"
                        ));
                    }
                }
                CaseEvent::EstimateNoted(noted) => {
                    let written = archive
                        .memories
                        .get(&noted.agent.token())
                        .into_iter()
                        .flatten();
                    let mut written = written.map(|one| &one.event);
                    let is_written = written.any(|MemoryEvent::Put(put)| {
                        (&put.entry.topic, put.version) == (&noted.topic, noted.version)
                            && put.case_id.as_ref().is_some_and(|case| case.token() == *id)
                    });
                    if is_closed || !is_written {
                        let who = &noted.agent;
                        violations.push(format!(
                            "confirmations: an estimate of {who} is noted at {at}"
                        ));
                    }
                }
                CaseEvent::FindingsClosed(_) | CaseEvent::Decided(_) => is_closed = true,
                _ => {}
            }
            known.apply(record.clone());
        }
    }
}

fn found(
    findings: &[ReceivedFinding],
    is_it: impl Fn(&ReceivedFinding) -> bool,
) -> Option<&ReceivedFinding> {
    findings.iter().find(|finding| is_it(finding))
}

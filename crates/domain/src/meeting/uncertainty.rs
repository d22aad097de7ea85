//! What is not certain in a package, in sentences.

use concord_wire::Token;

use super::MeetingPackage;

/// What the reader should know is not certain, what weighs most first.
pub(super) fn of(package: &MeetingPackage) -> Vec<String> {
    let mut lines = Vec::new();
    decision(package, &mut lines);
    alerts(package, &mut lines);
    agents(package, &mut lines);
    assumptions(package, &mut lines);
    lines
}

fn decision(package: &MeetingPackage, lines: &mut Vec<String>) {
    let case = &package.case;
    let Some(decision) = &case.decision else {
        lines.push(match case.cancelled {
            Some(_) => "The case was cancelled before it was decided.".to_owned(),
            None => "The case is not decided yet.".to_owned(),
        });
        return;
    };
    let (provisional, open) = match case.cancelled {
        Some(_) => {
            lines.push(
                "The case was cancelled: nobody reviews its decision or debates it any more."
                    .to_owned(),
            );
            ("Provisional, and not reviewed", "Not settled")
        }
        None => ("Provisional until a gate has reviewed it", "Still debated"),
    };
    for debate in &decision.provisional {
        lines.push(format!("{provisional}: {}.", topic(package, debate)));
    }
    for debate in &decision.open {
        lines.push(format!("{open}: {}.", topic(package, debate)));
    }
    if let Some(gate) = &package.gate_ahead {
        lines.push(format!("The case has not passed the gate {gate}."));
    }
    let deferred = decision.deferred.len();
    if deferred > 0 {
        lines.push(format!(
            "{deferred} conflicts of lower rank were not debated."
        ));
    }
    if !decision.missing.is_empty() {
        let missing: Vec<&str> = decision.missing.iter().map(|one| one.as_str()).collect();
        lines.push(format!("No finding came from {}.", missing.join(", ")));
    }
    if package.recommendation.differs(&case.policy) {
        lines.push(
            "The decision of the case recommends something else than the weighing of all findings."
                .to_owned(),
        );
    }
    if !package.to_do_again.is_empty() {
        let again: Vec<&str> = package.to_do_again.iter().map(Token::as_str).collect();
        lines.push(format!(
            "What they rest on has changed, and they were not done again yet: {}.",
            again.join(", ")
        ));
    }
}

/// The circumstances are others than those in which the case was begun.
fn alerts(package: &MeetingPackage, lines: &mut Vec<String>) {
    for flag in &package.case.alerts {
        let new = flag.new_regime.as_deref().unwrap_or("another regime");
        let old = flag.old_regime.as_deref().map(|old| format!(" from {old}"));
        let concerned: Vec<&str> = flag.affected.iter().map(|one| one.name.as_str()).collect();
        let concerns = match concerned.is_empty() {
            true => String::new(),
            false => format!("; it concerns {}", concerned.join(", ")),
        };
        lines.push(format!(
            "The regime changed{} to {new} at {}, while the case was open{concerns}.",
            old.unwrap_or_default(),
            flag.at
        ));
    }
}

fn topic(package: &MeetingPackage, debate: &concord_wire::DebateId) -> String {
    let dispute = package.disputes.iter().find(|one| one.debate_id == *debate);
    dispute.map_or_else(|| debate.to_string(), |one| one.topic.clone())
}

fn agents(package: &MeetingPackage, lines: &mut Vec<String>) {
    let thin: Vec<&str> = package
        .findings
        .iter()
        .filter(|one| one.data_points < super::STATED_WORTH)
        .map(|one| one.agent_id.as_str())
        .collect();
    if !thin.is_empty() && package.withheld.is_empty() {
        lines.push(format!(
            "Fewer than 15 data points in this field: {}. Their confidence is mostly their own word.",
            thin.join(", ")
        ));
    }
    for dispute in &package.disputes {
        if dispute.history.success.known == 0 {
            lines.push(format!(
                "No outcome of an earlier decision like it is known: {}.",
                dispute.topic
            ));
        }
    }
}

fn assumptions(package: &MeetingPackage, lines: &mut Vec<String>) {
    for finding in &package.findings {
        for assumption in &finding.assumptions {
            lines.push(format!("{} assumes: {assumption}", finding.agent_id));
        }
    }
}

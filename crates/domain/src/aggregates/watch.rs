//! What an installation watches for: the rules by which what agents remember raises alerts. One in an installation, owned by the coordinator.
//!
//! | state   | Put: as the last version says | Put: something else                  |
//! |---------|-------------------------------|--------------------------------------|
//! | nothing | -                             | rules_put: version 1, or refused [1] |
//! | stored  | ignored                       | rules_put: the next version, or refused [1] |
//!
//! | state                                      | RegimeChange: of a later alert | of an earlier one, or the same |
//! |--------------------------------------------|--------------------------------|--------------------------------|
//! | no regime, or another one                  | regime_changed                 | ignored                        |
//!
//! [1] Without a reason, or where a rule is none.
//!
//! The rules are read before an entry of memory is decided on, and are part of that decision: an entry is held against the rules that
//! stood then, once. [`crate::rules::alerting`] says when a rule is fulfilled.

use std::collections::BTreeMap;
use std::sync::Arc;

use concord_events::{AlertRulesPut, RegimeChanged, StoredEvent, WatchEvent};
use concord_wire::payload::{AlertRule, AlertRules, AlertTrigger, RegimeTerms};
use concord_wire::{AgentId, Timestamp, Token};

use super::person::{Act, Authority};
use super::policy::check_why;
use crate::machine::{Context, Decision, Ignored, Machine};
use crate::rules::alerting::Watched;

/// The state machine of what is watched for.
#[derive(Debug, Clone, Copy)]
pub struct WatchMachine;

/// What is watched for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WatchState {
    /// The versions of the rules, in order, each with the time at which it was stored. Shared: a state is copied whenever memory is
    /// written.
    pub versions: Vec<Arc<(AlertRulesPut, Timestamp)>>,
    /// The version since which each rule that stands looks for the same, by name.
    since: Arc<BTreeMap<Token, u32>>,
    /// The regime that the last alert has named; none before the first.
    pub regime: Option<Arc<RegimeChanged>>,
}

impl WatchState {
    /// The rules that stand; none where none were stored.
    pub fn last(&self) -> Option<&Arc<(AlertRulesPut, Timestamp)>> {
        self.versions.last()
    }

    /// The rules that an entry of `who` under this topic is held against; none where the sender is suspended.
    pub fn watched(&self, topic: &Token, who: &AgentId, sender: &Authority) -> Watched {
        let Some(stands) = self.last().filter(|_| sender.check_active(who).is_ok()) else {
            return Watched::default();
        };
        let may_alert = sender.allow(who, &Act::Alert).is_ok();
        Watched {
            since: Arc::clone(&self.since),
            ..Watched::of((stands.0.version, &stands.0.rules), topic, who, may_alert)
        }
    }

    /// What follows from a change of regime; none where no rules were stored, or all were taken away.
    pub fn terms(&self) -> Option<RegimeTerms> {
        let rules = self.last().map(|last| &last.0.rules);
        let stands = rules.filter(|rules| **rules != AlertRules::default());
        stands.map(|rules| rules.regime_change.clone())
    }

    /// The regime in which a debate of a case is opened now: that of the last alert, unless the case was opened after it and names
    /// one of its own. None where there is none but the case's.
    pub fn regime_of(&self, opened_sequence: u64, stated: Option<&str>) -> Option<String> {
        let regime = self.regime.as_ref()?;
        let is_newer = opened_sequence < regime.sequence || stated.is_none();
        is_newer.then(|| regime.regime.clone())
    }

    /// Since when the rules that are stored now look for the same as they do.
    fn since(&self, put: &AlertRulesPut) -> BTreeMap<Token, u32> {
        let before = self.last().into_iter();
        let before: Vec<&AlertRule> = before.flat_map(|last| &last.0.rules.rules).collect();
        let since = |rule: &AlertRule| {
            let mut before = before.iter();
            let is_same = before.any(|one| looks_for(one) == looks_for(rule));
            let since = self.since.get(&rule.name).filter(|_| is_same);
            since.copied().unwrap_or(put.version)
        };
        let rules = put.rules.rules.iter();
        rules.map(|rule| (rule.name.clone(), since(rule))).collect()
    }

    fn next_version(&self) -> u32 {
        self.last()
            .map_or(1, |last| last.0.version.saturating_add(1))
    }
}

/// The id of what the installation watches for.
pub fn id() -> Token {
    Token::fixed("memory")
}

/// One input. Who may ask for it is checked by the caller.
#[derive(Debug, Clone, PartialEq)]
pub enum WatchInput {
    /// Stores the rules.
    Put {
        /// All rules.
        rules: Box<AlertRules>,
        /// The operator.
        by: AgentId,
        /// The operator's reason.
        why: String,
    },
    /// An alert says that the regime has changed.
    RegimeChange(Box<RegimeChange>),
}

/// That the regime has changed, as an alert says it.
#[derive(Debug, Clone, PartialEq)]
pub struct RegimeChange {
    /// The regime from now on.
    pub regime: String,
    /// The alert.
    pub alert: Token,
    /// When it was raised.
    pub raised_at: Timestamp,
    /// The sequence of its event.
    pub sequence: u64,
}

impl Machine for WatchMachine {
    type State = WatchState;
    type Event = WatchEvent;
    type Input = WatchInput;

    fn decide(state: &WatchState, _: &Context, input: &WatchInput) -> Decision<WatchEvent> {
        let (rules, by, why) = match input {
            WatchInput::Put { rules, by, why } => (rules, by, why),
            WatchInput::RegimeChange(change) => return changed(state, change),
        };
        if let Err(fault) = rules.check("/rules").and_then(|()| check_why(why)) {
            return Decision::Reject(fault);
        }
        let stands = state.last().map(|last| &last.0.rules);
        // Where nothing was stored there are no rules, and taking them away changes nothing.
        if stands.unwrap_or(&AlertRules::default()) == &**rules {
            return Decision::Ignore(Ignored::AlreadyDone);
        }
        Decision::Append(WatchEvent::RulesPut(AlertRulesPut {
            version: state.next_version(),
            rules: (**rules).clone(),
            by: by.clone(),
            why: why.clone(),
        }))
    }

    fn apply(state: &mut WatchState, record: StoredEvent<WatchEvent>) {
        match record.event {
            WatchEvent::RulesPut(put) => {
                state.since = Arc::new(state.since(&put));
                state.versions.push(Arc::new((put, record.meta.at)));
            }
            WatchEvent::RegimeChanged(changed) => state.regime = Some(Arc::new(changed)),
        }
    }

    fn misplaced(before: &WatchState, event: &WatchEvent) -> Option<String> {
        let WatchEvent::RulesPut(put) = event else {
            return None;
        };
        let next = before.next_version();
        (put.version != next).then(|| format!("It is version {}, and {next} is due.", put.version))
    }
}

/// What a rule looks for, and under which name it has told of it.
fn looks_for(rule: &AlertRule) -> (&Token, Option<&str>, &AlertTrigger) {
    (&rule.name, rule.field.as_deref(), &rule.when)
}

fn changed(state: &WatchState, change: &RegimeChange) -> Decision<WatchEvent> {
    let before = state.regime.as_ref();
    if before.is_some_and(|before| before.sequence >= change.sequence) {
        return Decision::Ignore(Ignored::AlreadyDone);
    }
    Decision::Append(WatchEvent::RegimeChanged(RegimeChanged {
        regime: change.regime.clone(),
        before: before.map(|before| before.regime.clone()),
        alert: change.alert.clone(),
        raised_at: change.raised_at,
        sequence: change.sequence,
    }))
}

#[cfg(test)]
mod tests;

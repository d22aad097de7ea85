//! The filters of consumers agree with what machines do.

use super::*;

/// Facts that were seen to have effects, and facts that were seen to move deadlines.
#[derive(Default)]
struct Seen {
    effects: BTreeSet<&'static str>,
    moves: BTreeSet<&'static str>,
}

impl Seen {
    fn take<M: Machine>(&mut self, story: &Story<M>) {
        for record in &story.records {
            if !effect::messages::<M>(record).unwrap().is_empty() {
                self.effects.insert(record.event.name());
            }
            if !(record.meta.opened.is_empty() && record.meta.closed.is_empty()) {
                self.moves.insert(record.event.name());
            }
        }
    }

    /// Consumers are given the facts that have something for them, and no others.
    fn is_what_the_events_say<E: AggregateEvent>(&self) {
        for info in E::EVENTS {
            assert_eq!(
                self.effects.contains(info.name),
                info.has_effects,
                "effects of {}",
                info.name
            );
            assert_eq!(
                self.moves.contains(info.name),
                info.moves_deadlines,
                "deadlines of {}",
                info.name
            );
        }
    }
}

fn samples<S: Strategy>(strategy: S, count: usize) -> impl Iterator<Item = S::Value> {
    let mut runner = TestRunner::deterministic();
    (0..count).map(move |_| strategy.new_tree(&mut runner).unwrap().current())
}

#[test]
fn the_filters_of_consumers_are_those_of_the_machines() {
    let mut cases = Seen::default();
    for steps in samples(case_steps(), 300) {
        cases.take(&play_case(&steps));
    }
    crate::aggregates::case::tests::gates::stories()
        .iter()
        .for_each(|story| cases.take(story));
    cases.take(&crate::aggregates::case::tests::gates::figures::story());
    cases.take(&crate::aggregates::case::tests::joining::story());
    cases.take(&crate::aggregates::case::tests::confirming::story());
    cases.take(&crate::aggregates::case::tests::flags::story());
    cases.take(&crate::aggregates::case::tests::versions::mediated());
    cases.is_what_the_events_say::<concord_events::CaseEvent>();
    let mut alerts = Seen::default();
    for story in crate::aggregates::alert::tests::stories() {
        alerts.take(&story);
    }
    alerts.is_what_the_events_say::<concord_events::AlertEvent>();
    let mut syntheses = Seen::default();
    syntheses.take(&crate::aggregates::synthesis::tests::story());
    syntheses.is_what_the_events_say::<concord_events::SynthesisEvent>();
    let mut debates = Seen::default();
    for steps in samples(debate_steps(), 300) {
        debates.take(&play_debate(&steps));
    }
    debates.take(&crate::aggregates::debate::tests::memory_sync::story());
    for story in crate::aggregates::debate::ladder_stories(300) {
        debates.take(&story);
    }
    debates.is_what_the_events_say::<concord_events::DebateEvent>();
    let mut analyses = Seen::default();
    analyses.take(&crate::aggregates::impact::tests::estimating::story());
    analyses.is_what_the_events_say::<concord_events::ImpactEvent>();
    let mut records = Seen::default();
    records.take(&crate::aggregates::track_record::tests::told_story());
    records.is_what_the_events_say::<concord_events::TrackRecordEvent>();
}

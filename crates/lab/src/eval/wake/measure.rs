//! The quality and the speed of decisions to wake.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use concord_domain::activation::{Calibration, Candidate, Matcher, Part, Query, Sample, parts};
use concord_wire::AgentId;
use serde::Serialize;

use super::data::Labelled;
use super::several::Several;
use super::vectors::Vectors;
use concord_cli::shared::failure::Failure;

/// Half of the measurements are at most `p50_ms`, and 95 of 100 at most `p95_ms`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Latency {
    pub(super) p50_ms: f64,
    pub(super) p95_ms: f64,
}

impl Latency {
    pub(super) fn of(mut durations: Vec<Duration>) -> Self {
        durations.sort_unstable();
        let at = |share: f64| {
            let place = (durations.len() as f64 * share).ceil() as usize;
            durations
                .get(place.saturating_sub(1))
                .map_or(0.0, |duration| duration.as_secs_f64() * 1_000.0)
        };
        Self {
            p50_ms: thousandths(at(0.50)),
            p95_ms: thousandths(at(0.95)),
        }
    }
}

/// The times of decisions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Latencies {
    /// Making the message's vector; none without a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) embedding: Option<Latency>,
    /// Matching it with every agent.
    pub(super) matching: Latency,
    /// Both together.
    pub(super) whole: Latency,
}

/// The quality of decisions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Quality {
    /// The number of messages.
    pub(super) messages: usize,
    /// The number of messages for nobody.
    pub(super) for_nobody: usize,
    /// The share of messages for somebody whose agent was the likeliest.
    pub(super) top1: f64,
    /// The share of messages for somebody that woke their agent.
    pub(super) recall: f64,
    /// The share of wakes that were wrong, those by messages for nobody included.
    pub(super) false_wakes: f64,
    /// The share of messages for nobody that woke somebody.
    pub(super) false_wakes_for_nobody: f64,
    /// The number of wakes.
    pub(super) wakes: usize,
    /// The number of wrong wakes.
    pub(super) wrong_wakes: usize,
}

/// The quality of decisions about messages that concern several agents: whether the agents that wake are those that are concerned.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct SetQuality {
    /// The number of messages.
    pub(super) messages: usize,
    /// The share of wakes that were right.
    pub(super) precision: f64,
    /// The share of the agents concerned that woke.
    pub(super) recall: f64,
    /// The harmonic mean of precision and recall.
    pub(super) f1: f64,
    /// The share of messages that woke exactly the agents concerned.
    pub(super) exact: f64,
}

/// One message after another, as they would arrive: nothing is known of it beforehand but the cards.
pub(super) struct Run<'a> {
    pub(super) matcher: &'a Matcher,
    pub(super) vectors: Option<&'a Vectors>,
}

impl Run<'_> {
    /// Decides about messages; `look` is shown the candidates of each, by their place.
    pub(super) fn over<'m>(
        &self,
        messages: impl IntoIterator<Item = &'m str>,
        mut look: impl FnMut(usize, &[Candidate<'_>]),
    ) -> Result<Latencies, Failure> {
        let (mut embedding, mut matching, mut whole) = (Vec::new(), Vec::new(), Vec::new());
        let participations = BTreeMap::new();
        for (place, text) in messages.into_iter().enumerate() {
            let begun = Instant::now();
            let texts: Vec<&str> = [text].into_iter().chain(parts(text)).collect();
            let made = self
                .vectors
                .map(|vectors| vectors.embed_all(&texts))
                .transpose()?
                .unwrap_or_default();
            let vector = |place: usize| made.get(place).map(|vector| &vector[..]);
            let split: Vec<Part<'_>> = (1..)
                .zip(texts.iter().skip(1))
                .map(|(place, text)| Part {
                    text,
                    vector: vector(place),
                })
                .collect();
            let embedded = Instant::now();
            let query = Query {
                text,
                vector: vector(0),
                parts: &split,
                previous: None,
                participations: &participations,
                audience: None,
                from: None,
            };
            let candidates = self.matcher.rank(&query);
            let done = Instant::now();
            embedding.push(embedded - begun);
            matching.push(done - embedded);
            whole.push(done - begun);
            look(place, &candidates);
        }
        Ok(Latencies {
            embedding: self.vectors.map(|_| Latency::of(embedding)),
            matching: Latency::of(matching),
            whole: Latency::of(whole),
        })
    }

    /// The quality of decisions about labelled messages, and their times.
    pub(super) fn quality(
        &self,
        messages: &[Labelled],
        threshold: f64,
    ) -> Result<(Quality, Latencies), Failure> {
        let (mut first, mut right, mut wrong, mut disturbed) = (0_usize, 0_usize, 0_usize, 0_usize);
        let latencies = self.over(
            messages.iter().map(|message| message.text.as_str()),
            |place, candidates| {
                let truth = messages
                    .get(place)
                    .and_then(|message| message.agent.as_ref());
                let woken = candidates
                    .iter()
                    .filter(|candidate| candidate.probability >= threshold);
                let (rightly, wrongly): (Vec<&Candidate<'_>>, Vec<&Candidate<'_>>) =
                    woken.partition(|candidate| Some(candidate.agent) == truth);
                first += usize::from(
                    truth.is_some() && candidates.first().map(|candidate| candidate.agent) == truth,
                );
                right += rightly.len();
                wrong += wrongly.len();
                disturbed += usize::from(truth.is_none() && !wrongly.is_empty());
            },
        )?;
        let for_nobody = messages
            .iter()
            .filter(|message| message.agent.is_none())
            .count();
        let for_somebody = messages.len() - for_nobody;
        let quality = Quality {
            messages: messages.len(),
            for_nobody,
            top1: share(first, for_somebody),
            recall: share(right, for_somebody),
            false_wakes: share(wrong, right + wrong),
            false_wakes_for_nobody: share(disturbed, for_nobody),
            wakes: right + wrong,
            wrong_wakes: wrong,
        };
        Ok((quality, latencies))
    }

    /// The quality of decisions about messages that concern several agents.
    pub(super) fn set_quality(
        &self,
        messages: &[Several],
        threshold: f64,
    ) -> Result<SetQuality, Failure> {
        let (mut right, mut woken, mut concerned, mut exact) = (0_usize, 0_usize, 0_usize, 0_usize);
        let texts = messages.iter().map(|message| message.text.as_str());
        self.over(texts, |place, candidates| {
            let Some(message) = messages.get(place) else {
                return;
            };
            let wakes = candidates
                .iter()
                .filter(|candidate| candidate.probability >= threshold);
            let wakes: BTreeSet<&AgentId> = wakes.map(|candidate| candidate.agent).collect();
            let hits = message
                .agents
                .iter()
                .filter(|agent| wakes.contains(agent))
                .count();
            right += hits;
            woken += wakes.len();
            concerned += message.agents.len();
            exact += usize::from(hits == wakes.len() && hits == message.agents.len());
        })?;
        Ok(SetQuality {
            messages: messages.len(),
            precision: share(right, woken),
            recall: share(right, concerned),
            f1: share(2 * right, woken + concerned),
            exact: share(exact, messages.len()),
        })
    }

    /// A calibration from messages that are on no card; background and threshold stay as they are.
    pub(super) fn fitted(
        &self,
        messages: &[Labelled],
        calibration: Calibration,
    ) -> Result<Calibration, Failure> {
        let mut scored = Vec::new();
        self.over(
            messages.iter().map(|message| message.text.as_str()),
            |place, candidates| {
                let truth = messages
                    .get(place)
                    .and_then(|message| message.agent.as_ref());
                scored.push(
                    candidates
                        .iter()
                        .map(|c| (c.score, Some(c.agent) == truth))
                        .collect::<Vec<_>>(),
                );
            },
        )?;
        for agents in &mut scored {
            agents.sort_by(|a, b| b.0.total_cmp(&a.0));
        }
        let mut samples = Vec::new();
        for agents in &scored {
            let (best, second) = (agents.first().map(|a| a.0), agents.get(1).map(|a| a.0));
            for (place, (score, concerned)) in agents.iter().enumerate() {
                let lead = calibration.lead_of(*score, if place == 0 { second } else { best });
                samples.push(Sample {
                    score: *score,
                    lead,
                    concerned: *concerned,
                });
            }
        }
        let fitted = calibration.fitted(&samples);
        fitted.ok_or_else(|| {
            Failure::data(
                "no messages are left to fit a calibration to: give more phrases of each intent",
            )
        })
    }
}

pub(super) fn embedding_failed(error: concord_embedding::Error) -> Failure {
    let message = concord_runtime::delivery::ErrorChain(&error).to_string();
    match error {
        concord_embedding::Error::Read { .. } | concord_embedding::Error::Malformed { .. } => {
            Failure::usage(message)
        }
        _ => Failure::failed(message),
    }
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        0.0
    } else {
        (part as f64 / whole as f64 * 1e6).round() / 1e6
    }
}

fn thousandths(x: f64) -> f64 {
    (x * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use concord_wire::payload::{Card, Skill};

    use super::*;

    fn labelled(text: &str, agent: Option<&str>) -> Labelled {
        let agent = agent.map(|name| AgentId::new(name).unwrap());
        Labelled {
            text: text.to_owned(),
            intent: String::new(),
            agent,
        }
    }

    #[test]
    fn wakes_are_counted_as_they_are_defined() {
        let mut matcher = Matcher::default();
        for (name, example) in [
            ("tax", "file the tax return"),
            ("sea", "waves and tides of the ocean"),
        ] {
            let skill = Skill {
                name: name.to_owned(),
                examples: vec![example.to_owned()],
                ..Skill::default()
            };
            let card = Card {
                skills: vec![skill],
                ..Card::new(AgentId::new(name).unwrap())
            };
            matcher.insert(&card, |_| None);
        }
        let run = Run {
            matcher: &matcher,
            vectors: None,
        };
        let messages = [
            labelled("file the tax return", Some("tax")),
            labelled("ocean waves and tides", Some("tax")),
            labelled("qqq", Some("sea")),
            labelled("file the tax return", None),
            labelled("xyz", None),
        ];
        let (quality, latencies) = run.quality(&messages, 0.7).unwrap();
        assert_eq!(
            (
                quality.messages,
                quality.for_nobody,
                quality.wakes,
                quality.wrong_wakes
            ),
            (5, 2, 3, 2)
        );
        // Where nothing fits, the first by name comes first: that is chance, and here it is right.
        assert_eq!(quality.top1, 0.666_667);
        assert_eq!(
            (
                quality.recall,
                quality.false_wakes,
                quality.false_wakes_for_nobody
            ),
            (0.333_333, 0.666_667, 0.5)
        );
        assert_eq!(latencies.embedding, None);
    }

    #[test]
    fn percentiles_are_measurements() {
        let latency = Latency::of((1..=100).map(Duration::from_millis).collect());
        assert_eq!((latency.p50_ms, latency.p95_ms), (50.0, 95.0));
        assert_eq!(Latency::of(vec![]).p95_ms, 0.0);
    }
}

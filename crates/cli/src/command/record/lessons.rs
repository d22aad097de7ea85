//! `concord record lessons`: what was learned when the outcomes of debates became known.

use std::collections::BTreeMap;

use clap::Args;
use concord_domain::rules::canonical::normalise;
use concord_events::{Aggregate, PrecedentEvent, StoredEvent};
use concord_wire::payload::Precedent;
use concord_wire::{DebateId, Timestamp};
use serde::Serialize;

use crate::shared::args::JsonArg;
use crate::shared::connection::ConnectionArgs;
use crate::shared::event_source::{EventQuery, EventSource, event_of};
use crate::shared::failure::Failure;
use crate::shared::output::{BAD, Cell, GOOD, NAMED, Table, one_line};

/// At most so many characters of a text stand in a cell.
const CELL: usize = 60;

/// Arguments of `concord record lessons`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  concord record lessons
  concord record lessons margin --domain valuation
  concord record lessons --json | jq -r '.[].lesson'

A lesson is what was said when it became known what proved right in a debate (concord outcome DEBATE --because ...). The
newest is first.")]
pub(crate) struct LessonsArgs {
    /// Words that the topic, the positions or the lesson have; every lesson when absent.
    words: Vec<String>,
    /// Only of debates in this domain.
    #[arg(long)]
    domain: Option<String>,
    #[command(flatten)]
    json: JsonArg,
}

/// A lesson, as it is printed.
#[derive(Debug, Serialize)]
struct Lesson {
    debate_id: DebateId,
    /// When the debate ended.
    at: Timestamp,
    topic: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<String>,
    /// The position that was chosen.
    chosen: String,
    /// What proved right.
    proved: String,
    /// Absent where what was chosen states no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    was_right: Option<bool>,
    lesson: String,
}

impl Lesson {
    /// The lesson of a precedent, if its outcome is known.
    fn of(one: Precedent) -> Option<Self> {
        let proved = one.proved?;
        Some(Self {
            debate_id: one.debate_id,
            at: one.at,
            topic: one.topic,
            domain: one.matter.and_then(|matter| matter.domain),
            chosen: one.position,
            was_right: proved.was_right(),
            proved: proved.position,
            lesson: proved.explanation,
        })
    }

    /// Whether all of these words are in it, and it is of this domain.
    fn is_about(&self, words: &[String], domain: Option<&str>) -> bool {
        let texts = [&self.topic, &self.chosen, &self.proved, &self.lesson];
        let text = normalise(&texts.map(String::as_str).join(" "));
        let own = self.domain.as_deref().map(normalise);
        words.iter().all(|word| text.contains(&normalise(word)))
            && domain.is_none_or(|asked| own == Some(normalise(asked)))
    }
}

pub(crate) async fn run(connection: &ConnectionArgs, args: &LessonsArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let source = EventSource::new(&broker).await?;
    let mut known: BTreeMap<DebateId, Lesson> = BTreeMap::new();
    let query = EventQuery::of_kind(Aggregate::Precedent);
    source
        .for_each(&query, "reading precedents", |stored| {
            if stored.non_event.is_some() {
                return Ok(());
            }
            let event: StoredEvent<PrecedentEvent> = event_of(&stored)?;
            let PrecedentEvent::Recorded(recorded) = event.event;
            // A debate is entered several times; the last entry is what is known.
            if let Some(lesson) = Lesson::of(recorded.precedent) {
                known.insert(lesson.debate_id.clone(), lesson);
            }
            Ok(())
        })
        .await?;
    let mut lessons: Vec<Lesson> = known
        .into_values()
        .filter(|one| one.is_about(&args.words, args.domain.as_deref()))
        .collect();
    lessons.sort_by(|a, b| b.at.cmp(&a.at).then_with(|| a.debate_id.cmp(&b.debate_id)));
    args.json.print(&lessons, |lessons| text(lessons))?;
    Ok(0)
}

fn text(lessons: &[Lesson]) -> String {
    if lessons.is_empty() {
        return "No such lesson is known; one is kept when it is said what proved right: concord outcome DEBATE\n"
            .to_owned();
    }
    let mut table = Table::new(["DEBATE", "ABOUT", "CHOSEN", "RIGHT", "LESSON"]);
    for one in lessons {
        let chosen = Cell::text(one_line(&one.chosen, CELL / 2));
        table.row([
            Cell::text(&one.debate_id).with(NAMED),
            Cell::text(one_line(&one.topic, CELL)),
            match one.was_right {
                Some(true) => chosen.with(GOOD),
                Some(false) => chosen.with(BAD),
                None => chosen,
            },
            Cell::text(one_line(&one.proved, CELL / 2)),
            Cell::text(one_line(&one.lesson, 2 * CELL)),
        ]);
    }
    table.to_string()
}

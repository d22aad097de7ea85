//! After a debate: somebody says what proved right; too early, twice, two at once, as a party, as nobody in particular.

use concord_wire::subject::Service;
use serde_json::{Value, json};

use super::ladder::EXPERTS;
use super::{Agents, Draft, NAMES, OPENER, STRANGER, text};
use crate::world::World;

impl Agents {
    /// A debate has ended, or provisionally.
    pub(super) fn say_what_proved_right(&mut self, world: &mut World, message: &Value) {
        let event = text(message, "/payload/event");
        if !matches!(event, Some("debate_resolved" | "debate_provisional"))
            || !self.random.chance(0.3)
        {
            return;
        }
        let Some(case) = text(message, "/case_id").map(str::to_owned) else {
            return;
        };
        let data = message.pointer("/payload/data").unwrap_or(&Value::Null);
        let outcome = data.pointer("/outcome").unwrap_or(&Value::Null);
        let Some(debate) = text(outcome, "/conflict_id").map(str::to_owned) else {
            return;
        };
        let party = text(outcome, "/positions/0/agent_id")
            .unwrap_or("ada")
            .to_owned();
        let in_ms = self.random.between(0, 9_000);
        let draft = self.outcome(&case, &debate, &party);
        match self.random.between(0, 99) {
            0..60 => self.say(world, in_ms, &draft),
            60..70 => self.twice_said(world, in_ms, &draft),
            // Two who do not know of each other.
            70..85 => {
                let second = self.outcome(&case, &debate, &party);
                self.say(world, in_ms, &draft);
                self.say(world, in_ms, &second);
            }
            85..90 => self.say(
                world,
                in_ms,
                &Draft {
                    case: Some("c-nowhere".into()),
                    ..draft
                },
            ),
            _ => {
                let other = self.outcome(&case, "d-nothing", &party);
                self.say(world, in_ms, &other);
            }
        }
    }

    fn outcome(&mut self, case: &str, debate: &str, party: &str) -> Draft {
        let expert = self.random.pick(&EXPERTS).copied().unwrap_or("fay");
        let participant = self.random.pick(&NAMES).copied().unwrap_or("ada");
        let from = *self
            .random
            .pick(&[OPENER, OPENER, expert, participant, STRANGER])
            .unwrap_or(&OPENER);
        let payload = match self.random.between(0, 9) {
            0..5 => {
                json!({ "debate_id": debate, "held_by": party, "explanation": "The annual report." })
            }
            5..8 => {
                json!({ "debate_id": debate, "position": "27 %", "value": 27, "explanation": "The report." })
            }
            8 => json!({ "debate_id": debate, "held_by": STRANGER, "explanation": "So they say." }),
            _ => json!({ "debate_id": debate, "explanation": "Nothing." }),
        };
        Draft {
            from: from.into(),
            to: Service::DebateFacilitator,
            kind: "outcome",
            case: Some(case.into()),
            id: self.fresh_id(),
            payload,
            more: Value::Null,
        }
    }
}

//! Messages of which it is known whom they concern, and the agents made from them.

use std::collections::BTreeMap;
use std::path::Path;

use concord_wire::AgentId;
use concord_wire::payload::{Card, Skill};

use concord_cli::shared::failure::Failure;

/// The domain of messages that concern nobody.
const NOBODY: &str = "oos";
/// The columns of a file, in their order.
const COLUMNS: [&str; 3] = ["text", "intent", "domain"];

/// The agents of a file: domain -> its intents.
pub(super) type Domains = BTreeMap<AgentId, Vec<String>>;

/// A message and whom it concerns.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Labelled {
    pub(super) text: String,
    pub(super) intent: String,
    /// None when it concerns nobody.
    pub(super) agent: Option<AgentId>,
}

fn read(path: &Path) -> Result<String, Failure> {
    let name = path.display();
    let bytes = std::fs::read(path)
        .map_err(|error| Failure::usage(format!("{name} cannot be read: {error}")))?;
    String::from_utf8(bytes).map_err(|error| Failure::data(format!("{name} is not UTF-8: {error}")))
}

/// Reads the agents: a JSON object of lists of intents.
pub(super) fn domains(path: &Path) -> Result<Domains, Failure> {
    let name = path.display();
    let parsed: BTreeMap<String, Vec<String>> =
        serde_json::from_str(&read(path)?).map_err(|error| {
            Failure::data(format!(
                "{name} is not an object of domains with lists of intents: {error}"
            ))
        })?;
    let agent = |(domain, intents): (String, Vec<String>)| {
        let id = AgentId::new(domain.as_str()).map_err(|error| {
            Failure::data(format!(
                "{name}: the domain {domain:?} cannot be an agent's id: it {error}"
            ))
        })?;
        Ok((id, intents))
    };
    let domains: Domains = parsed
        .into_iter()
        .map(agent)
        .collect::<Result<_, Failure>>()?;
    if domains.is_empty() {
        return Err(Failure::data(format!("{name} has no domain")));
    }
    Ok(domains)
}

/// Reads messages: tab-separated columns `text`, `intent`, `domain`, under a heading. The domain `oos` is that of messages
/// for nobody.
pub(super) fn messages(path: &Path, domains: &Domains) -> Result<Vec<Labelled>, Failure> {
    let name = path.display();
    let text = read(path)?;
    let mut lines = text
        .lines()
        .enumerate()
        .map(|(place, line)| (place + 1, line));
    let heading = lines
        .next()
        .map(|(_, line)| line.split('\t').collect::<Vec<_>>());
    if heading.as_deref() != Some(&COLUMNS[..]) {
        return Err(Failure::data(format!(
            "{name}, line 1: expected the heading {}, separated by tabs",
            COLUMNS.join(", ")
        )));
    }
    let filled = lines.filter(|(_, line)| !line.trim().is_empty());
    let messages = filled.map(|(number, line)| {
        labelled(line, domains).map_err(|e| Failure::data(format!("{name}, line {number}: {e}")))
    });
    let messages: Vec<Labelled> = messages.collect::<Result<_, _>>()?;
    if messages.is_empty() {
        return Err(Failure::data(format!("{name} has no messages")));
    }
    Ok(messages)
}

fn labelled(line: &str, domains: &Domains) -> Result<Labelled, String> {
    let columns: Vec<&str> = line.split('\t').collect();
    let [text, intent, domain] = columns.as_slice() else {
        return Err(format!(
            "expected 3 columns separated by tabs, found {}",
            columns.len()
        ));
    };
    if text.trim().is_empty() {
        return Err("the text is blank".to_owned());
    }
    let agent = if *domain == NOBODY {
        None
    } else {
        let Some((agent, intents)) = domains.iter().find(|(agent, _)| agent.as_str() == *domain)
        else {
            return Err(format!(
                "there is no domain {domain:?}; messages for nobody have the domain {NOBODY:?}"
            ));
        };
        if !intents.iter().any(|known| known == intent) {
            return Err(format!("the domain {domain:?} has no intent {intent:?}"));
        }
        Some(agent.clone())
    };
    Ok(Labelled {
        text: (*text).to_owned(),
        intent: (*intent).to_owned(),
        agent,
    })
}

/// Training messages as cards, and what is left of them.
pub(super) struct Split {
    pub(super) cards: Vec<Card>,
    /// Messages that are on no card, as many of each intent as were asked for.
    pub(super) held_out: Vec<Labelled>,
    /// Messages that concern somebody and are neither on a card nor held out.
    pub(super) rest: Vec<Labelled>,
}

/// Makes each domain an agent and each of its intents a skill, with the first messages of the intent as examples. Of each
/// intent so many further messages are held out, and all that concern nobody.
pub(super) fn split(
    train: Vec<Labelled>,
    domains: &Domains,
    phrases: usize,
    held_out_max: usize,
) -> Split {
    let mut examples: BTreeMap<(AgentId, String), Vec<String>> = BTreeMap::new();
    let (mut held_out, mut rest) = (Vec::new(), Vec::new());
    let mut seen: BTreeMap<(AgentId, String), usize> = BTreeMap::new();
    for message in train {
        let Some(agent) = &message.agent else {
            held_out.push(message);
            continue;
        };
        let key = (agent.clone(), message.intent.clone());
        let seen = seen.entry(key.clone()).or_default();
        *seen += 1;
        if *seen <= phrases {
            examples.entry(key).or_default().push(message.text);
        } else if *seen <= phrases + held_out_max {
            held_out.push(message);
        } else {
            rest.push(message);
        }
    }
    let skill = |agent: &AgentId, intent: &String| Skill {
        name: intent.clone(),
        examples: examples
            .get(&(agent.clone(), intent.clone()))
            .cloned()
            .unwrap_or_default(),
        ..Skill::default()
    };
    let card = |(agent, intents): (&AgentId, &Vec<String>)| Card {
        skills: intents.iter().map(|intent| skill(agent, intent)).collect(),
        ..Card::new(agent.clone())
    };
    Split {
        cards: domains.iter().map(card).collect(),
        held_out,
        rest,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    fn two() -> Domains {
        [("auto", vec!["gas"]), ("bank", vec!["pin", "bill"])]
            .map(|(name, intents)| {
                (
                    AgentId::new(name).unwrap(),
                    intents.into_iter().map(str::to_owned).collect(),
                )
            })
            .into()
    }

    #[test]
    fn bad_files_are_refused_at_their_line() {
        for (text, expected) in [
            ("", "line 1: expected the heading text, intent, domain"),
            ("text,intent,domain\n", "line 1: expected the heading"),
            ("text\tintent\tdomain\n", "has no messages"),
            (
                "text\tintent\tdomain\na\tgas\tauto\n\nb\tgas\n",
                "line 4: expected 3 columns separated by tabs, found 2",
            ),
            (
                "text\tintent\tdomain\na\tgas\tplane\n",
                "line 2: there is no domain \"plane\"",
            ),
            (
                "text\tintent\tdomain\na\tpin\tauto\n",
                "line 2: the domain \"auto\" has no intent \"pin\"",
            ),
            (
                "text\tintent\tdomain\n \tpin\tbank\n",
                "line 2: the text is blank",
            ),
        ] {
            let failure = messages(file(text).path(), &two()).unwrap_err();
            assert!(failure.to_string().contains(expected), "{failure}");
            assert_eq!(failure.code(), Failure::DATA);
        }
        assert_eq!(
            messages(Path::new("absent.tsv"), &two())
                .unwrap_err()
                .code(),
            2
        );
        for text in ["", "[]", "{}", "{\"a.b\": []}", "{\"a\": 1}"] {
            assert_eq!(
                domains(file(text).path()).unwrap_err().code(),
                Failure::DATA,
                "{text}"
            );
        }
    }

    #[test]
    fn a_domain_is_an_agent_and_the_first_messages_of_an_intent_are_its_examples() {
        let text = "text\tintent\tdomain\np1\tpin\tbank\nx\toos\toos\np2\tpin\tbank\ng1\tgas\tauto\np3\tpin\tbank\np4\tpin\tbank\n";
        let messages = messages(file(text).path(), &two()).unwrap();
        let Split {
            cards,
            held_out,
            rest,
        } = split(messages, &two(), 2, 1);
        let skills = |card: &Card| {
            card.skills
                .iter()
                .map(|s| format!("{} {}", s.name, s.examples.join(" ")))
                .collect()
        };
        let cards: Vec<(String, Vec<String>)> = cards
            .iter()
            .map(|c| (c.agent_id.to_string(), skills(c)))
            .collect();
        assert_eq!(
            cards,
            [
                ("auto".to_owned(), vec!["gas g1".to_owned()]),
                (
                    "bank".to_owned(),
                    vec!["pin p1 p2".to_owned(), "bill ".to_owned()]
                ),
            ]
        );
        assert_eq!(
            held_out
                .iter()
                .map(|message| message.text.as_str())
                .collect::<Vec<_>>(),
            ["x", "p3"]
        );
        assert_eq!(
            rest.first().map(|message| message.text.as_str()),
            Some("p4")
        );
    }
}

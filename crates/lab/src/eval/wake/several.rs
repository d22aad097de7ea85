//! Messages that concern several agents: requests of different domains, joined to one message.

use std::collections::BTreeSet;

use concord_wire::AgentId;

use super::data::Labelled;
use super::synthetic::Source;

/// How many messages are made.
pub(super) const MESSAGES: usize = 600;
/// Of how many of them one is of three requests; the others are of two.
const EACH_OF_THREE: usize = 3;
/// How people join two requests. The last has no word and no mark at all.
const JOINTS: [&str; 10] = [
    " and ",
    ". ",
    ", ",
    "; ",
    " and also ",
    ", and ",
    "? also, ",
    ", then ",
    " but first ",
    " ",
];

/// A message and whom it concerns.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Several {
    pub(super) text: String,
    pub(super) agents: BTreeSet<AgentId>,
}

/// Messages of two or three requests of different domains. The same seed makes the same messages; each request is used in
/// about as many of them as any other.
pub(super) fn joined(requests: &[Labelled], seed: u64) -> Vec<Several> {
    let mut source = Source::new(seed);
    let mut pool: Vec<&Labelled> = Vec::new();
    let mut made = Vec::new();
    let domains: BTreeSet<&AgentId> = requests
        .iter()
        .filter_map(|one| one.agent.as_ref())
        .collect();
    if domains.len() < EACH_OF_THREE {
        return made;
    }
    while made.len() < MESSAGES {
        let wanted = if made.len() % EACH_OF_THREE == 0 {
            3
        } else {
            2
        };
        let mut one = Several {
            text: String::new(),
            agents: BTreeSet::new(),
        };
        while one.agents.len() < wanted {
            if pool.is_empty() {
                pool = requests.iter().filter(|one| one.agent.is_some()).collect();
            }
            let place = source.below(pool.len());
            let request = pool.swap_remove(place);
            let Some(agent) = request
                .agent
                .as_ref()
                .filter(|agent| !one.agents.contains(*agent))
            else {
                continue;
            };
            if !one.text.is_empty() {
                one.text
                    .push_str(JOINTS.get(source.below(JOINTS.len())).unwrap_or(&" "));
            }
            one.text.push_str(&request.text);
            one.agents.insert(agent.clone());
        }
        made.push(one);
    }
    made
}

//! The prompts of a model, read from the files that its settings name.

use std::path::Path;

use super::{Error, OpenAiAgent};

const PEER_REVIEW: &str = include_str!("prompts/peer_review.txt");
const TASK: &str = include_str!("prompts/task.txt");
const REQUEST: &str = include_str!("prompts/request.txt");

/// The placeholders that a template of a peer review may have in braces.
const PEER_REVIEW_NAMES: &[&str] = &[
    "topic",
    "your_position",
    "other_positions",
    "round",
    "max_rounds",
    "max_tokens",
    "deadline",
    "task",
    "message",
];
/// The placeholders that the other templates may have in braces.
const OTHER_NAMES: &[&str] = &["deadline", "task", "message"];

/// The texts from which the prompts of one model are made.
#[derive(Debug)]
pub(crate) struct PromptTemplates {
    /// The model's own system prompt; may be empty.
    pub(crate) system: String,
    pub(crate) peer_review: String,
    pub(crate) task: String,
    pub(crate) request: String,
}

impl PromptTemplates {
    /// Reads the files that the settings name. `key` is the path of these settings.
    pub(crate) fn read(key: &str, agent: &OpenAiAgent) -> Result<Self, Error> {
        let system = match (&agent.system_prompt_file, agent.system_prompt.is_empty()) {
            (Some(_), false) => {
                let message = "leave out system_prompt or system_prompt_file";
                return Err(Error::new(format!("{key}.system_prompt"), message));
            }
            (Some(path), true) => contents(&format!("{key}.system_prompt_file"), path)?,
            (None, _) => agent.system_prompt.clone(),
        };
        let template = |name: &str, path: Option<&Path>, default: &str, names: &[&str]| {
            let key = format!("{key}.{name}");
            let text = path.map_or_else(|| Ok(default.to_owned()), |path| contents(&key, path))?;
            check_names(&key, &text, names)?;
            Ok(text)
        };
        let peer_review = agent.peer_review_template.as_deref();
        let task = agent.task_template.as_deref();
        let request = agent.request_template.as_deref();
        Ok(Self {
            system,
            peer_review: template(
                "peer_review_template",
                peer_review,
                PEER_REVIEW,
                PEER_REVIEW_NAMES,
            )?,
            task: template("task_template", task, TASK, OTHER_NAMES)?,
            request: template("request_template", request, REQUEST, OTHER_NAMES)?,
        })
    }
}

/// Whether the text between two braces has the form of a placeholder. Other braces are text, such as those of JSON.
pub(crate) fn is_placeholder(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

fn check_names(key: &str, template: &str, names: &[&str]) -> Result<(), Error> {
    let mut used = template
        .split('{')
        .skip(1)
        .filter_map(|part| part.split_once('}').map(|(name, _)| name));
    match used.find(|name| is_placeholder(name) && !names.contains(name)) {
        Some(name) => {
            let names = names.join("}, {");
            let message = format!("there is no {{{name}}}; a template can name {{{names}}}");
            Err(Error::new(key, message))
        }
        None => Ok(()),
    }
}

fn contents(key: &str, path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path)
        .map_err(|error| Error::of_file(key, format!("{} cannot be read: {error}", path.display())))
}

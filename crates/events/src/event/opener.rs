//! Events of an opener: what one sender holds of the quotas of the installation.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::events;
use crate::Aggregate;
use concord_wire::id::{AgentId, CaseId, MessageId, Token};

events! {
    /// What can happen to an opener. Who is no operator has one, from the first case on.
    OpenerEvent of Aggregate::Opener;
    Admitted(Admitted) = "admitted", effects: false, deadlines: false,
        "There is room for another case of the opener, which is opened next.";
    Challenged(ChallengeAdmitted) = "challenged", effects: false, deadlines: false,
        "There is room for another challenge in the open cases of the opener.";
    Released(CaseReleased) = "released", effects: false, deadlines: false,
        "A case has ended for good, or was not opened after all: it counts no more.";
    TaskAdmitted(TaskAdmitted) = "task_admitted", effects: false, deadlines: false,
        "There is room for another task of the opener, which is opened next.";
    TaskReleased(TaskReleased) = "task_released", effects: false, deadlines: false,
        "A task has ended, or was not opened after all: it counts no more.";
    QuotaReached(QuotaReached) = "quota_reached", effects: false, deadlines: false,
        "Something was refused because a quota is used up. At most one an hour for each quota.";
}

/// How much one opener may have at a time; 0 is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Quotas {
    /// Open cases of one opener: those that are not decided, and those that people still have to review. 0 for no limit.
    pub open_cases: u32,
    /// Gates of the open cases of one opener. 0 for no limit.
    pub gates: u32,
    /// Challenges in the open cases of one opener, whoever challenges. 0 for no limit.
    pub challenges: u32,
    /// Tasks of one opener that have not ended. 0 for no limit.
    pub open_tasks: u32,
}

impl Default for Quotas {
    fn default() -> Self {
        Self {
            open_cases: 1_000,
            gates: 4_000,
            challenges: 1_000,
            open_tasks: 10_000,
        }
    }
}

/// What a quota counts.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum QuotaKind {
    /// Open cases.
    OpenCases,
    /// Gates of open cases.
    Gates,
    /// Challenges in open cases.
    Challenges,
    /// Tasks that have not ended.
    OpenTasks,
}

impl QuotaKind {
    /// The name, as in the settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenCases => "open_cases",
            Self::Gates => "gates",
            Self::Challenges => "challenges",
            Self::OpenTasks => "open_tasks",
        }
    }

    /// What it counts, in words.
    pub fn counted(self) -> &'static str {
        match self {
            Self::OpenCases => "open cases",
            Self::Gates => "gates in open cases",
            Self::Challenges => "challenges in open cases",
            Self::OpenTasks => "open tasks",
        }
    }
}

impl fmt::Display for QuotaKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Contents of `admitted`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Admitted {
    /// The opener.
    pub opener: AgentId,
    /// The case.
    pub case_id: CaseId,
    /// How many gates it has.
    pub gates: u32,
    /// The quotas at that time.
    pub quotas: Quotas,
}

/// Contents of `challenged`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChallengeAdmitted {
    /// The case.
    pub case_id: CaseId,
    /// The challenge's message.
    pub message_id: MessageId,
    /// The quota of challenges at that time; 0 for no limit.
    pub quota: u32,
}

/// Contents of `released`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CaseReleased {
    /// The case.
    pub case_id: CaseId,
}

/// Contents of `task_admitted`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskAdmitted {
    /// The opener.
    pub opener: AgentId,
    /// The task.
    pub task_id: Token,
    /// The quota of open tasks at that time; 0 for no limit.
    pub quota: u32,
}

/// Contents of `task_released`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskReleased {
    /// The task.
    pub task_id: Token,
}

/// Contents of `quota_reached`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "StoredQuotaReached", into = "StoredQuotaReached")]
pub struct QuotaReached {
    /// The opener.
    pub opener: AgentId,
    /// Which quota.
    pub quota: QuotaKind,
    /// Its number.
    pub limit: u32,
    /// The case that was not opened, or in which nothing was challenged.
    pub case_id: Option<CaseId>,
    /// The task that was not opened.
    pub task_id: Option<Token>,
}

/// `quota_reached` as it is stored.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
struct StoredQuotaReached {
    /// The opener.
    opener: AgentId,
    /// Which quota.
    quota: QuotaKind,
    /// Its number.
    limit: u32,
    /// The case that was not opened, or in which nothing was challenged. A task stands here, too, for versions that know no
    /// `task_id` and require this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    case_id: Option<CaseId>,
    /// The task that was not opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task_id: Option<Token>,
}

impl From<QuotaReached> for StoredQuotaReached {
    fn from(reached: QuotaReached) -> Self {
        let QuotaReached {
            opener,
            quota,
            limit,
            case_id,
            task_id,
        } = reached;
        let task = task_id.as_ref();
        let case_id = case_id.or_else(|| task.and_then(|task| CaseId::new(task.as_str()).ok()));
        Self {
            opener,
            quota,
            limit,
            case_id,
            task_id,
        }
    }
}

impl From<StoredQuotaReached> for QuotaReached {
    fn from(stored: StoredQuotaReached) -> Self {
        let StoredQuotaReached {
            opener,
            quota,
            limit,
            case_id,
            task_id,
        } = stored;
        let (case_id, task_id) = match (quota, case_id) {
            // Earlier versions named the task as a case, and nowhere else.
            (QuotaKind::OpenTasks, named) => (None, task_id.or(named.map(|named| named.token()))),
            (_, case_id) => (case_id, task_id),
        };
        Self {
            opener,
            quota,
            limit,
            case_id,
            task_id,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_task_that_was_refused_is_read_by_earlier_versions_and_theirs_by_this_one() {
        let reached = QuotaReached {
            opener: AgentId::new("opal").unwrap(),
            quota: QuotaKind::OpenTasks,
            limit: 2,
            case_id: None,
            task_id: Some(Token::fixed("t-1")),
        };
        let mut stored = json!(reached);
        assert_eq!(
            (&stored["case_id"], &stored["task_id"]),
            (&json!("t-1"), &json!("t-1"))
        );
        assert_eq!(
            serde_json::from_value::<QuotaReached>(stored.clone()).unwrap(),
            reached
        );
        stored.as_object_mut().unwrap().remove("task_id");
        assert_eq!(
            serde_json::from_value::<QuotaReached>(stored).unwrap(),
            reached
        );
    }
}

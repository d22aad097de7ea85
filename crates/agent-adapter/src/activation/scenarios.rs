//! The scenarios and diagrams of the specification of coordination, word for word: by letters always, and by meaning where the
//! model is (`CONCORD_MODEL`, else `.tools/model`).

use concord_wire::payload::Card;
use serde_json::{Value, json};

use stage::stages;

mod stage;

fn skill(name: &str, description: &str, examples: &[&str]) -> Value {
    json!({ "name": name, "description": description, "examples": examples })
}

fn card(agent: &str, skills: &[Value]) -> Card {
    serde_json::from_value(json!({ "agent_id": agent, "skills": skills })).unwrap()
}

/// The agents of the scenarios, with cards of what the scenarios say of them.
fn agents() -> Vec<Card> {
    let currency = skill(
        "currency",
        "Current exchange rates of currencies",
        &[
            "What is the exchange rate for EUR to USD?",
            "Convert 100 dollars to yen",
        ],
    );
    let general = skill(
        "general_questions",
        "Answers everyday questions and looks up current facts",
        &[
            "What's the current time in Tokyo?",
            "What is the capital of Malaysia?",
        ],
    );
    let code = skill(
        "programming",
        "Writes and reviews code of web services",
        &["Write a function that parses JSON", "Build a REST API"],
    );
    let schema = skill(
        "schema",
        "Designs database schemas, tables and indexes",
        &[
            "Design a schema for an online shop",
            "I need help designing a schema",
        ],
    );
    let postgresql = skill(
        "postgresql",
        "Runs PostgreSQL: connection pooling, tuning, replication",
        &[
            "Our PostgreSQL has too many connections",
            "How large should the connection pool be?",
        ],
    );
    let authentication = skill(
        "authentication",
        "User authentication: login, passwords, OAuth tokens",
        &[
            "How do we store OAuth tokens safely?",
            "Is this user login safe?",
        ],
    );
    vec![
        card("accounting-agent", &[currency]),
        card("generalist-agent", &[general]),
        card("coder-agent", &[code]),
        card("database-agent", &[schema, postgresql]),
        card("security-agent", &[authentication]),
        card("squad-lead", &[]),
    ]
}

/// The agents of the second diagram.
fn peers() -> Vec<Card> {
    let tables = skill(
        "auth_tables",
        "Help with the tables of auth: users and sessions",
        &["help with auth tables"],
    );
    let auth = skill(
        "auth_tokens",
        "Help with the tokens of auth: login and passwords",
        &["help with auth tokens"],
    );
    let screens = skill(
        "screens",
        "Colours and fonts of screens",
        &["Make the button blue"],
    );
    vec![
        card("coder", &[]),
        card("database", &[tables]),
        card("security", &[auth]),
        card("ui", &[screens]),
    ]
}

fn of<'a>(decided: &'a [String], agent: &str) -> &'a str {
    let start = format!("{agent}: ");
    let mut found = decided.iter().filter_map(|line| line.strip_prefix(&start));
    found.next().unwrap()
}

fn woken(decided: &[String]) -> Vec<&str> {
    let wakes = decided.iter().filter(|line| line.contains(": wake "));
    wakes.filter_map(|line| line.split(':').next()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn scenario_1_a_user_asks_a_general_question() {
    for mut stage in stages(&agents()).await {
        let text = "What's the current exchange rate for USD to MYR?";
        let decided = stage
            .say("group_query", "user-session-001", "_any", text)
            .await;
        assert_eq!(
            of(&decided, "accounting-agent"),
            "wake semantic:currency",
            "{decided:?}"
        );
        assert_eq!(
            of(&decided, "generalist-agent"),
            "observe below_threshold",
            "{decided:?}"
        );
        assert_eq!(
            of(&decided, "coder-agent"),
            "ignore irrelevant",
            "{decided:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn scenario_2_an_agent_requests_the_help_of_peers() {
    for mut stage in stages(&agents()).await {
        let text = "I need help designing a schema for user authentication with OAuth tokens";
        let decided = stage.say("peer_request", "coder-agent", "_any", text).await;
        assert_eq!(
            of(&decided, "database-agent"),
            "wake semantic:schema",
            "{decided:?}"
        );
        assert_eq!(
            of(&decided, "security-agent"),
            "wake semantic:authentication",
            "{decided:?}"
        );
        assert_eq!(
            of(&decided, "accounting-agent"),
            "ignore irrelevant",
            "{decided:?}"
        );
    }
}

/// What was asked before about another matter keeps nobody asleep whom the message by itself wakes.
#[tokio::test(flavor = "multi_thread")]
async fn scenario_2_in_the_conversation_of_scenario_1() {
    for mut stage in stages(&agents()).await {
        let text = "What's the current exchange rate for USD to MYR?";
        let decided = stage
            .say("group_query", "user-session-001", "_any", text)
            .await;
        assert_eq!(woken(&decided), ["accounting-agent"], "{decided:?}");
        let text = "I need help designing a schema for user authentication with OAuth tokens";
        let decided = stage.say("peer_request", "coder-agent", "_any", text).await;
        assert_eq!(
            woken(&decided),
            ["database-agent", "security-agent"],
            "{decided:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn scenario_3_a_problem_is_solved_together() {
    for mut stage in stages(&agents()).await {
        let given = stage
            .say(
                "task_assignment",
                "squad-lead",
                "coder-agent",
                "Build user login API",
            )
            .await;
        assert_eq!(woken(&given), ["coder-agent"], "{given:?}");
        let text = "Need help with PostgreSQL connection pooling";
        let decided = stage.say("peer_request", "coder-agent", "_any", text).await;
        assert_eq!(
            of(&decided, "database-agent"),
            "wake semantic:postgresql",
            "{decided:?}"
        );
        assert_eq!(
            of(&decided, "security-agent"),
            "wake context:authentication",
            "{decided:?}"
        );
        assert_eq!(
            woken(&decided),
            ["database-agent", "security-agent"],
            "{decided:?}"
        );
        for (kind, from, text) in [
            (
                "info_update",
                "database-agent",
                "I can help. You should use pgbouncer with...",
            ),
            (
                "info_update",
                "security-agent",
                "Also consider rate limiting for login attempts...",
            ),
            (
                "task_result",
                "coder-agent",
                "Login API complete with pooling and rate limiting",
            ),
        ] {
            let decided = stage.say(kind, from, "_all", text).await;
            assert!(woken(&decided).is_empty(), "{text}: {decided:?}");
            assert_eq!(of(&decided, "generalist-agent"), "observe information");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lead_asks_for_takers_and_for_objections() {
    for mut stage in stages(&agents()).await {
        let text = "Who has experience with OAuth implementation?";
        let decided = stage.say("group_query", "squad-lead", "_any", text).await;
        assert_ne!(
            of(&decided, "security-agent"),
            "ignore irrelevant",
            "{decided:?}"
        );
        stage
            .say(
                "task_assignment",
                "squad-lead",
                "coder-agent",
                "Build user login API",
            )
            .await;
        stage
            .say(
                "info_update",
                "database-agent",
                "_all",
                "The plan needs one table more",
            )
            .await;
        let text = "Does anyone disagree with this plan?";
        let decided = stage.say("group_query", "squad-lead", "_any", text).await;
        assert_eq!(
            woken(&decided),
            ["coder-agent", "database-agent"],
            "{decided:?}"
        );
        assert_eq!(of(&decided, "coder-agent"), "wake position", "{decided:?}");
        let text = "I disagree with this plan: it has no tests";
        let decided = stage.say("group_query", "coder-agent", "_any", text).await;
        assert_eq!(
            woken(&decided),
            ["database-agent", "squad-lead"],
            "{decided:?}"
        );
    }
}

/// The first diagram: A and C wake on the user's query, B does not.
#[tokio::test(flavor = "multi_thread")]
async fn diagram_1_a_query_of_a_user_wakes_two_of_three() {
    let agents = agents();
    let three: Vec<Card> = ["database-agent", "accounting-agent", "security-agent"]
        .iter()
        .filter_map(|name| {
            agents
                .iter()
                .find(|card| card.agent_id.as_str() == *name)
                .cloned()
        })
        .collect();
    for mut stage in stages(&three).await {
        let text = "Is this user login safe, and how large should the connection pool be?";
        let decided = stage.say("group_query", "user", "_any", text).await;
        assert_eq!(
            woken(&decided),
            ["database-agent", "security-agent"],
            "{decided:?}"
        );
        assert_eq!(
            of(&decided, "accounting-agent"),
            "ignore irrelevant",
            "{decided:?}"
        );
    }
}

/// The second diagram: the coder gets help from both experts.
#[tokio::test(flavor = "multi_thread")]
async fn diagram_2_a_peer_request_wakes_both_experts() {
    for mut stage in stages(&peers()).await {
        let decided = stage
            .say("peer_request", "coder", "_any", "help with auth")
            .await;
        assert_eq!(woken(&decided), ["database", "security"], "{decided:?}");
        assert_eq!(of(&decided, "ui"), "ignore irrelevant", "{decided:?}");
    }
}

use serde_json::{Value, json};

use super::*;

fn check(settings: &AdapterSettings) -> Result<(), Error> {
    super::check::parse(settings).map(|_| ())
}

fn settings(own: Value) -> AdapterSettings {
    serde_json::from_value(own).unwrap()
}

fn agents(agents: Value) -> AdapterSettings {
    settings(json!({ "agents": agents }))
}

fn model(fields: Value) -> Value {
    let mut openai = json!({ "base_url": "https://models.example/v1", "model": "m" });
    openai
        .as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    json!([{ "agent_id": "ann", "openai": openai }])
}

fn server(fields: Value) -> Value {
    let mut http = json!({ "url": "http://127.0.0.1:9/x" });
    http.as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    json!([{ "agent_id": "ann", "http": http }])
}

#[test]
fn each_way_to_run_an_agent_is_accepted() {
    let command = json!({ "agent_id": "a", "command": ["x"], "environment": { "A": "b" } });
    for own in [
        json!({ "agents": [command, { "agent_id": "b", "command": ["x"] }] }),
        json!({ "agents": server(json!({ "headers": { "x-team": "a" }, "idempotent": true })) }),
        json!({ "agents": model(json!({ "temperature": 0.2, "system_prompt": "You are careful." })) }),
        json!({
            "agents": [{ "agent_id": "a", "command": ["x"], "provider": "groq" }],
            "budgets": { "groq": { "requests_per_minute": 30 }, "gemini": { "tokens_per_minute": 1000 } },
        }),
        json!({ "callback": { "listen": "127.0.0.1:0", "public_url": "http://x/y", "secret": "0".repeat(32) } }),
    ] {
        assert_eq!(check(&settings(own.clone())), Ok(()), "{own}");
    }
}

#[test]
fn settings_that_could_not_work_are_refused_by_name() {
    let one = |fields: Value| {
        let mut agent = json!({ "agent_id": "a", "command": ["x"] });
        agent
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        agents(json!([agent]))
    };
    let http = json!({ "url": "https://a.example/" });
    let callback = |fields: Value| settings(json!({ "callback": fields }));
    let good =
        json!({ "listen": "127.0.0.1:0", "public_url": "http://x", "secret": "0".repeat(32) });
    let without = |name: &str| {
        let mut fields = good.clone();
        fields.as_object_mut().unwrap().remove(name);
        callback(fields)
    };
    for (settings, key) in [
        (
            agents(json!([{ "agent_id": "coordinator", "command": ["x"] }])),
            "agents[0].agent_id",
        ),
        (
            agents(
                json!([{ "agent_id": "a", "command": ["x"] }, { "agent_id": "a", "command": ["y"] }]),
            ),
            "agents[1].agent_id",
        ),
        (agents(json!([{ "agent_id": "a" }])), "agents[0]"),
        (one(json!({ "http": http })), "agents[0]"),
        (
            agents(json!([{ "agent_id": "a", "http": http, "environment": { "A": "b" } }])),
            "agents[0]",
        ),
        (one(json!({ "instances": 0 })), "agents[0].instances"),
        (one(json!({ "timeout_ms": 0 })), "agents[0].timeout_ms"),
        (one(json!({ "tries_max": 0 })), "agents[0].tries_max"),
        (
            one(json!({ "breaker": { "failures_max": 0 } })),
            "agents[0].breaker.failures_max",
        ),
        (
            one(json!({ "skills": [{ "name": " " }] })),
            "agents[0].skills.0.name",
        ),
        (one(json!({ "heartbeat_ms": 1 })), "agents[0].heartbeat_ms"),
        (one(json!({ "provider": "groq" })), "agents[0].provider"),
        (
            agents(server(json!({ "url": "ftp://a.example/" }))),
            "agents[0].http.url",
        ),
        (
            agents(server(json!({ "url": "http://u:p@a.example/" }))),
            "agents[0].http.url",
        ),
        (
            agents(server(json!({ "headers": { "a b": "c" } }))),
            "agents[0].http.headers",
        ),
        (
            agents(server(json!({ "headers": { "a": "c\nd" } }))),
            "agents[0].http.headers",
        ),
        (
            agents(server(json!({ "api_key_env": "NO_SUCH_VARIABLE_HERE" }))),
            "agents[0].http.api_key_env",
        ),
        (
            agents(server(json!({ "api_key_file": "/nowhere" }))),
            "agents[0].http.api_key_file",
        ),
        (
            agents(server(json!({ "tls_ca": "/nowhere" }))),
            "agents[0].http.tls_ca",
        ),
        (
            agents(model(json!({ "base_url": "models" }))),
            "agents[0].openai.base_url",
        ),
        (
            agents(model(json!({ "model": "" }))),
            "agents[0].openai.model",
        ),
        (
            agents(model(json!({ "max_tokens": 0 }))),
            "agents[0].openai.max_tokens",
        ),
        (
            agents(model(json!({ "temperature": 3 }))),
            "agents[0].openai.temperature",
        ),
        (
            agents(model(json!({ "api_key_env": "A", "api_key_file": "/b" }))),
            "agents[0].openai.api_key_env",
        ),
        (
            agents(model(
                json!({ "system_prompt": "a", "system_prompt_file": "/b" }),
            )),
            "agents[0].openai.system_prompt",
        ),
        (
            agents(model(json!({ "task_template": "/nowhere" }))),
            "agents[0].openai.task_template",
        ),
        (
            settings(json!({ "budgets": { "groq": {} } })),
            "budgets.groq",
        ),
        (
            settings(json!({ "budgets": { "groq": { "requests_per_minute": 0 } } })),
            "budgets.groq.requests_per_minute",
        ),
        (
            settings(json!({ "budgets": { "g".repeat(49): { "requests_per_minute": 1 } } })),
            &format!("budgets.{}", "g".repeat(49)),
        ),
        (
            settings(json!({ "loops": { "depth_max": 128 } })),
            "loops.depth_max",
        ),
        (
            settings(json!({ "loops": { "window_ms": 0 } })),
            "loops.window_ms",
        ),
        (
            settings(json!({ "loops": { "pause_ms": 0 } })),
            "loops.pause_ms",
        ),
        (
            callback(json!({ "public_url": "http://x" })),
            "callback.listen",
        ),
        (
            callback(json!({ "listen": "somewhere" })),
            "callback.listen",
        ),
        (without("public_url"), "callback.public_url"),
        (without("secret"), "callback.secret"),
        (
            callback(
                json!({ "listen": "127.0.0.1:0", "public_url": "http://x", "secret": "short" }),
            ),
            "callback.secret",
        ),
    ] {
        let error = check(&settings).unwrap_err().to_string();
        assert!(
            error.contains(&format!("\"service.{key}\"")),
            "{key}: {error}"
        );
        assert!(
            !error.contains("short\"") && !error.contains("u:p"),
            "{error}"
        );
    }
}

#[test]
fn a_template_can_name_only_what_there_is() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(
        file.path(),
        "About {topic} {and {\"json\": 1} and {nonsense}",
    )
    .unwrap();
    let error = check(&agents(model(
        json!({ "peer_review_template": file.path() }),
    )))
    .unwrap_err()
    .to_string();
    assert!(
        error.contains("there is no {nonsense}") && error.contains("{your_position}"),
        "{error}"
    );
    std::fs::write(file.path(), "About {topic}: {\"json\": 1}").unwrap();
    assert_eq!(
        check(&agents(model(
            json!({ "peer_review_template": file.path() })
        ))),
        Ok(())
    );
}

#[test]
fn the_card_is_what_the_settings_say() {
    let own = agents(json!([{
        "agent_id": "ann", "name": "Ann", "version": "2", "description": "d", "command": ["x"], "domains": ["tax"],
        "skills": [{ "name": "tax", "examples": ["What is VAT?"] }], "triggers": ["vat"], "dialect": "panel",
        "capacity": 3, "heartbeat_ms": 1000,
    }]));
    let card = serde_json::to_value(own.agents[0].card()).unwrap();
    let expected = json!({
        "agent_id": "ann", "name": "Ann", "version": "2", "description": "d", "domains": ["tax"],
        "skills": [{ "name": "tax", "examples": ["What is VAT?"] }], "triggers": ["vat"], "dialect": "panel",
        "capacity": 3, "heartbeat_ms": 1000,
    });
    assert_eq!(card, expected);
}

#[test]
fn no_secret_is_shown_in_settings_or_in_what_is_wrong_with_them() {
    const SECRET: &str = "sk-0123456789-very-secret";
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("{SECRET}\nand more")).unwrap();
    // A key with a line break inside cannot be sent in a header; saying so must not repeat it.
    let wrong = agents(model(json!({ "api_key_file": file.path() })));
    let error = check(&wrong).unwrap_err();
    assert!(
        error.to_string().contains("api_key_file")
            && !format!("{error} {error:?}").contains("sk-0"),
        "{error}"
    );
    let own = settings(json!({
        "agents": server(json!({ "headers": { "x-key": SECRET } })),
        "callback": { "listen": "127.0.0.1:0", "public_url": "http://x", "secret": format!("{SECRET}-and-longer") },
    }));
    assert_eq!(check(&own), Ok(()));
    for shown in [serde_json::to_string(&own).unwrap(), format!("{own:?}")] {
        assert!(!shown.contains("sk-0"), "{shown}");
    }
}

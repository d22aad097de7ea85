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

fn assert_refused<'a>(rows: impl IntoIterator<Item = (AdapterSettings, &'a str)>) {
    for (settings, key) in rows {
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
fn agents_that_could_not_work_are_refused_by_name() {
    let one = |fields: Value| {
        let mut agent = json!({ "agent_id": "a", "command": ["x"] });
        agent
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        agents(json!([agent]))
    };
    let program = |id: &str| json!({ "agent_id": id, "command": ["x"] });
    let http = json!({ "url": "https://a.example/" });
    let surrounded = json!([{ "agent_id": "a", "http": http, "environment": { "A": "b" } }]);
    let unbroken = json!({ "breaker": { "failures_max": 0 } });
    let nameless = json!({ "skills": [{ "name": " " }] });
    assert_refused([
        (
            agents(json!([program("coordinator")])),
            "agents[0].agent_id",
        ),
        (
            agents(json!([program("a"), program("a")])),
            "agents[1].agent_id",
        ),
        (agents(json!([{ "agent_id": "a" }])), "agents[0]"),
        (one(json!({ "http": http })), "agents[0]"),
        (agents(surrounded), "agents[0]"),
        (one(json!({ "instances": 0 })), "agents[0].instances"),
        (one(json!({ "timeout_ms": 0 })), "agents[0].timeout_ms"),
        (one(json!({ "tries_max": 0 })), "agents[0].tries_max"),
        (one(unbroken), "agents[0].breaker.failures_max"),
        (one(nameless), "agents[0].skills.0.name"),
        (one(json!({ "heartbeat_ms": 1 })), "agents[0].heartbeat_ms"),
        (one(json!({ "provider": "groq" })), "agents[0].provider"),
    ]);
}

#[test]
fn servers_and_models_that_could_not_work_are_refused_by_name() {
    let missing = json!({ "api_key_env": "NO_SUCH_VARIABLE_HERE" });
    for (fields, name) in [
        (json!({ "url": "ftp://a.example/" }), "url"),
        (json!({ "url": "http://u:p@a.example/" }), "url"),
        (json!({ "headers": { "a b": "c" } }), "headers"),
        (json!({ "headers": { "a": "c\nd" } }), "headers"),
        (json!({ "header_files": { "a b": "/b" } }), "header_files"),
        (
            json!({ "header_files": { "a": "/nowhere" } }),
            "header_files",
        ),
        (
            json!({ "headers": { "a": "b" }, "header_files": { "A": "/b" } }),
            "header_files",
        ),
        (missing, "api_key_env"),
        (json!({ "api_key_file": "/nowhere" }), "api_key_file"),
        (json!({ "tls_ca": "/nowhere" }), "tls_ca"),
    ] {
        let key = format!("agents[0].http.{name}");
        assert_refused([(agents(server(fields)), &*key)]);
    }
    let two_keys = json!({ "api_key_env": "A", "api_key_file": "/b" });
    let two_prompts = json!({ "system_prompt": "a", "system_prompt_file": "/b" });
    for (fields, name) in [
        (json!({ "base_url": "models" }), "base_url"),
        (json!({ "model": "" }), "model"),
        (json!({ "max_tokens": 0 }), "max_tokens"),
        (json!({ "temperature": 3 }), "temperature"),
        (two_keys, "api_key_env"),
        (two_prompts, "system_prompt"),
        (json!({ "task_template": "/nowhere" }), "task_template"),
    ] {
        let key = format!("agents[0].openai.{name}");
        assert_refused([(agents(model(fields)), &*key)]);
    }
}

#[test]
fn budgets_loops_and_callbacks_that_could_not_work_are_refused_by_name() {
    let budget = |name: &str, fields: Value| settings(json!({ "budgets": { name: fields } }));
    let loops = |fields: Value| settings(json!({ "loops": fields }));
    let callback = |fields: Value| settings(json!({ "callback": fields }));
    let good =
        json!({ "listen": "127.0.0.1:0", "public_url": "http://x", "secret": "0".repeat(32) });
    let with = |name: &str, value: Value| {
        let mut fields = good.clone();
        fields[name] = value;
        callback(fields)
    };
    let without = |name: &str| {
        let mut fields = good.clone();
        fields.as_object_mut().unwrap().remove(name);
        callback(fields)
    };
    let long = "g".repeat(49);
    assert_refused([
        (budget("groq", json!({})), "budgets.groq"),
        (
            budget("groq", json!({ "requests_per_minute": 0 })),
            "budgets.groq.requests_per_minute",
        ),
        (
            budget(&long, json!({ "requests_per_minute": 1 })),
            &format!("budgets.{long}"),
        ),
        (loops(json!({ "depth_max": 128 })), "loops.depth_max"),
        (loops(json!({ "window_ms": 0 })), "loops.window_ms"),
        (loops(json!({ "pause_ms": 0 })), "loops.pause_ms"),
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
        (with("secret", json!("short")), "callback.secret"),
    ]);
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

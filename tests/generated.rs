//! Golden tests: every generated file is what the code makes. `scripts/generate` writes them again.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use concord_agent_adapter::{AdapterSettings, BudgetSettings, HostedAgent, HttpAgent, OpenAiAgent};
use concord_escalation_timer::TimerSettings;
use concord_runtime::service::settings::reference;
use serde_json::{Map, Value};
use xtask::schema;
use yaml_rust2::{Yaml, YamlLoader};

/// Every generated file: its path in the repository and its contents.
fn files() -> Vec<(String, String)> {
    let documents = schema::documents().into_iter();
    let mut files: Vec<_> = documents
        .map(|(name, document)| (format!("proto-schemas/{name}"), schema::pretty(&document)))
        .collect();
    files.push(("proto-schemas/asyncapi.yaml".into(), schema::asyncapi()));
    files.push(("docs/subjects.md".into(), schema::subjects()));
    files.push(("docs/errors.md".into(), schema::errors()));
    files.push(("docs/configuration.md".into(), configuration()));
    files
}

fn configuration() -> String {
    // A service's own settings stand under `service` in the settings of all.
    let timer = reference::own_rows::<TimerSettings>();
    let mut adapter = reference::own_rows::<AdapterSettings>();
    adapter.extend(reference::element_rows::<HostedAgent>("service.agents"));
    adapter.extend(reference::rows_at::<HttpAgent>("service.agents[].http"));
    adapter.extend(reference::rows_at::<OpenAiAgent>("service.agents[].openai"));
    adapter.extend(reference::rows_at::<BudgetSettings>(
        "service.budgets.<provider>",
    ));
    reference::page(&[
        ("escalation-timer", "The escalation timer alone.", timer),
        (
            "agent-adapter",
            "The agent adapter alone: notifications of people, `[service.notify.email]` and `[service.notify.webhook]` in the \
             file, and a list of hosted agents, `[[service.agents]]`.",
            adapter,
        ),
    ])
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Files of a generated form that nothing makes any more. Examples stand in folders of their own and are written by hand.
fn left_over(files: &[(String, String)]) -> Vec<String> {
    let made: BTreeSet<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
    let Ok(entries) = fs::read_dir(root().join("proto-schemas")) else {
        return Vec::new();
    };
    entries
        .map(|entry| {
            format!(
                "proto-schemas/{}",
                entry.unwrap().file_name().to_str().unwrap()
            )
        })
        .filter(|path| path.ends_with(".schema.json") && !made.contains(path.as_str()))
        .collect()
}

#[test]
fn every_generated_file_is_what_the_code_makes() {
    let files = files();
    if std::env::var_os("CONCORD_BLESS").is_some_and(|value| value == "1") {
        return bless(&files);
    }
    let mut differences: Vec<String> = left_over(&files)
        .into_iter()
        .map(|path| format!("{path}: nothing makes it any more"))
        .collect();
    for (path, contents) in &files {
        match fs::read_to_string(root().join(path)) {
            Ok(found) if found == *contents => {}
            Ok(found) => {
                differences.push(format!("{path}: {}", first_difference(&found, contents)))
            }
            Err(error) => differences.push(format!("{path}: {error}")),
        }
    }
    assert!(
        differences.is_empty(),
        "generated files are out of date; run scripts/generate and commit what it writes:\n  {}\n",
        differences.join("\n  ")
    );
}

fn bless(files: &[(String, String)]) {
    for path in left_over(files) {
        fs::remove_file(root().join(path)).unwrap();
    }
    for (path, contents) in files {
        let path = root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }
}

fn first_difference(found: &str, made: &str) -> String {
    let (mut found, mut made) = (found.lines(), made.lines());
    for line in 1.. {
        match (found.next(), made.next()) {
            (None, None) => break,
            (found, made) if found == made => {}
            (found, made) => {
                let text = |line: Option<&str>| {
                    line.map_or("nothing".to_owned(), |line| format!("{line:?}"))
                };
                return format!(
                    "line {line} is {}, the code makes {}",
                    text(found),
                    text(made)
                );
            }
        }
    }
    "only the end of the file differs".into()
}

#[test]
fn every_file_is_made_once_and_every_schema_names_itself() {
    let files = files();
    let paths: BTreeSet<_> = files.iter().map(|(path, _)| path).collect();
    assert_eq!(paths.len(), files.len());
    for (name, document) in schema::documents() {
        assert_eq!(document["$id"], format!("{}{name}", schema::ID_BASE));
        assert_eq!(
            document["$schema"], "https://json-schema.org/draft/2020-12/schema",
            "{name}"
        );
        for keyword in ["title", "description"] {
            assert!(
                document[keyword]
                    .as_str()
                    .is_some_and(|text| !text.is_empty()),
                "{name}: {keyword}"
            );
        }
        jsonschema::meta::validate(&document).unwrap_or_else(|error| panic!("{name}: {error}"));
        each_reference(&document, &mut |target| {
            assert!(entry(&document, target).is_some(), "{name}: {target}")
        });
    }
}

#[test]
fn every_link_of_a_generated_page_leads_to_a_file() {
    for (page, text) in files()
        .into_iter()
        .filter(|(path, _)| path.ends_with(".md"))
    {
        let folder = root().join(&page).parent().unwrap().to_owned();
        for link in text.split("](").skip(1) {
            let target = link.split([')', '#']).next().unwrap();
            assert!(folder.join(target).is_file(), "{page}: {target}");
        }
    }
}

#[test]
fn every_reference_of_the_asyncapi_document_leads_somewhere() {
    let document = asyncapi();
    let schemas: BTreeSet<_> = schema::documents()
        .into_iter()
        .map(|(name, _)| format!("./{name}"))
        .collect();
    let mut used = BTreeSet::new();
    each_reference(&document, &mut |target| match target.starts_with('#') {
        true => assert!(entry(&document, target).is_some(), "{target}"),
        false => {
            assert!(schemas.contains(target), "{target}");
            used.insert(target.to_owned());
        }
    });
    let apart = [
        "./envelope.schema.json",
        "./open_case.schema.json",
        "./open_debate.schema.json",
    ];
    let apart = apart
        .into_iter()
        .chain(["./dead-letter.schema.json"])
        .map(str::to_owned);
    assert_eq!(
        used,
        &schemas - &apart.collect(),
        "schemas that messages refer to"
    );
}

#[test]
fn the_asyncapi_document_fits_together() {
    let document = asyncapi();
    assert_eq!(document["asyncapi"], "3.0.0");
    for (name, channel) in document["channels"].as_object().unwrap() {
        let address = channel["address"].as_str().unwrap();
        let in_address: BTreeSet<_> = address
            .split('.')
            .filter_map(|token| token.strip_prefix('{')?.strip_suffix('}'))
            .collect();
        let declared: BTreeSet<_> = channel["parameters"]
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(in_address, declared, "{name}");
        assert!(
            !channel["messages"].as_object().unwrap().is_empty(),
            "{name}"
        );
    }
    for (name, operation) in document["operations"].as_object().unwrap() {
        assert!(
            ["send", "receive"].contains(&operation["action"].as_str().unwrap()),
            "{name}"
        );
        for part in [Some(operation), operation.get("reply")]
            .into_iter()
            .flatten()
        {
            let messages = format!("{}/messages/", part["channel"]["$ref"].as_str().unwrap());
            for message in part
                .get("messages")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                assert!(
                    message["$ref"].as_str().unwrap().starts_with(&messages),
                    "{name}: {message}"
                );
            }
        }
    }
}

/// The AsyncAPI document, read back by an independent reader.
fn asyncapi() -> Value {
    let documents = YamlLoader::load_from_str(&schema::asyncapi()).unwrap();
    let [document] = documents.as_slice() else {
        panic!("one document")
    };
    value(document)
}

fn value(yaml: &Yaml) -> Value {
    match yaml {
        Yaml::Hash(map) => {
            let entries = map
                .iter()
                .map(|(key, node)| (key.as_str().unwrap().to_owned(), value(node)));
            Value::Object(entries.collect::<Map<_, _>>())
        }
        Yaml::Array(list) => list.iter().map(value).collect(),
        Yaml::String(text) => text.as_str().into(),
        other => panic!("only maps, lists and texts are written: {other:?}"),
    }
}

fn each_reference(value: &Value, visit: &mut dyn FnMut(&str)) {
    match value {
        Value::Object(map) => {
            map.get("$ref")
                .and_then(Value::as_str)
                .into_iter()
                .for_each(&mut *visit);
            map.values().for_each(|inner| each_reference(inner, visit));
        }
        Value::Array(list) => list.iter().for_each(|inner| each_reference(inner, visit)),
        _ => {}
    }
}

fn entry<'a>(document: &'a Value, reference: &str) -> Option<&'a Value> {
    document.pointer(reference.strip_prefix('#')?)
}

//! Golden tests: every generated file is what the code makes. `scripts/generate` writes them again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use xtask::generate::{self, GeneratedFile};
use xtask::schema;
use yaml_rust2::{Yaml, YamlLoader};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

#[test]
fn every_generated_file_is_what_the_code_makes() {
    let differences = generate::differences(&root(), &generate::files()).unwrap();
    let lines: Vec<String> = differences.iter().map(ToString::to_string).collect();
    assert!(
        lines.is_empty(),
        "generated files are out of date; run scripts/generate and commit what it writes:\n  {}\n",
        lines.join("\n  ")
    );
}

#[test]
fn every_file_is_made_once_and_every_schema_names_itself() {
    let files = generate::files();
    let paths: BTreeSet<_> = files.iter().map(|file| &file.path).collect();
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
    let files = generate::files();
    for GeneratedFile {
        path: page,
        contents,
    } in files.iter().filter(|file| file.path.ends_with(".md"))
    {
        let folder = root().join(page).parent().unwrap().to_owned();
        for link in contents.split("](").skip(1) {
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

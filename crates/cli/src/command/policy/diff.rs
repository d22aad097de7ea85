//! `concord policy diff`: in what two policies differ.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};

use super::{DiffArgs, PolicyView, fetch, show};
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::Failure;
use crate::shared::output::{Cell, NAMED, Table, styled};

/// A field, or the bound of one, that differs.
#[derive(Debug, PartialEq, Serialize)]
struct Change {
    field: String,
    /// None where there is none.
    from: Option<Value>,
    to: Option<Value>,
}

/// In what two policies differ, as it is printed.
#[derive(Debug, Serialize)]
struct Difference {
    from: Value,
    to: Value,
    fields: Vec<Change>,
    bounds: Vec<Change>,
}

pub(super) async fn run(connection: &ConnectionArgs, args: &DiffArgs) -> Result<u8, Failure> {
    let broker = connection.connect().await?;
    let from = fetch(&broker, &args.from.name, args.from.version).await?;
    let to = fetch(&broker, &args.to.name, args.to.version).await?;
    args.json.print(&difference(&from, &to), |difference| {
        text(&from, &to, difference)
    })?;
    Ok(0)
}

fn changes(from: &BTreeMap<String, Value>, to: &BTreeMap<String, Value>) -> Vec<Change> {
    let fields: BTreeSet<&String> = from.keys().chain(to.keys()).collect();
    let differ = fields
        .into_iter()
        .filter(|field| from.get(*field) != to.get(*field));
    let change = |field: &String| Change {
        field: field.clone(),
        from: from.get(field).cloned(),
        to: to.get(field).cloned(),
    };
    differ.map(change).collect()
}

fn difference(from: &PolicyView, to: &PolicyView) -> Difference {
    // The name is no rule.
    let fields = |view: &PolicyView| {
        let mut fields = view.policy.fields();
        fields.remove("preset");
        fields
    };
    let bounds = from.bounds.differences(&to.bounds).into_iter();
    let bounds = bounds.map(|(field, from, to)| Change {
        field,
        from: Some(json!(from)),
        to: Some(json!(to)),
    });
    let named = |view: &PolicyView| json!({ "name": view.name, "version": view.version });
    Difference {
        from: named(from),
        to: named(to),
        fields: changes(&fields(from), &fields(to)),
        bounds: bounds.collect(),
    }
}

fn text(from: &PolicyView, to: &PolicyView, difference: &Difference) -> String {
    let named = |view: &PolicyView| {
        let version = show::version(view.version);
        format!("{} ({version})", styled(NAMED, &view.name))
    };
    let mut out = format!("{} -> {}\n", named(from), named(to));
    for (what, changes) in [
        ("fields", &difference.fields),
        ("bounds", &difference.bounds),
    ] {
        if changes.is_empty() {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "no {what} differ");
            continue;
        }
        let side = |value: &Option<Value>| match value {
            None => "not set".to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        };
        let mut table = Table::new(["FIELD", "OLD", "NEW"]).indented("  ");
        for change in changes {
            let (from, to) = (side(&change.from), side(&change.to));
            table.row([
                Cell::text(&change.field),
                Cell::text(from),
                Cell::text(format!("-> {to}")),
            ]);
        }
        let _ = write!(out, "{what} that differ\n{table}");
    }
    out
}

#[cfg(test)]
mod tests {
    use concord_wire::policy::{Policy, PolicyBounds};

    use super::*;

    fn view(version: u32, policy: Policy, bounds: Value) -> PolicyView {
        PolicyView {
            name: super::super::name("house rules").unwrap(),
            version,
            by: None,
            why: None,
            at: None,
            digest: policy.digest(),
            policy,
            bounds: serde_json::from_value::<PolicyBounds>(bounds).unwrap(),
            versions: vec![1, 2],
        }
    }

    #[test]
    fn each_field_and_bound_that_differs_is_named_with_both_values() {
        let one = view(
            1,
            Policy::contract_review(),
            json!({ "rounds_max": "lower" }),
        );
        let mut policy = Policy::contract_review();
        policy.rounds_max = 3;
        policy.ladder.times.person_ms = 1_000;
        policy.ladder.domain = Some("tax".into());
        let other = view(2, policy, json!({ "rounds_max": "any", "ladder": "any" }));
        let found = difference(&one, &other);
        let named = |changes: &[Change]| -> Vec<String> {
            let named = changes.iter().map(|change| change.field.clone());
            named.collect()
        };
        assert_eq!(
            named(&found.fields),
            ["ladder.domain", "ladder.times.person_ms", "rounds_max"]
        );
        assert_eq!(named(&found.bounds), ["ladder", "rounds_max"]);
        let printed = text(&one, &other, &found);
        let printed = anstream::adapter::strip_str(&printed).to_string();
        for line in [
            "house rules (1) -> house rules (2)\n",
            "  ladder.domain           not set   -> tax\n",
            "  rounds_max              2         -> 3\n",
            "  ladder      fixed  -> any\n",
        ] {
            assert!(printed.contains(line), "{line}: {printed}");
        }
        let none = text(&one, &one, &difference(&one, &one));
        assert!(
            none.contains("no fields differ\nno bounds differ\n"),
            "{none}"
        );
    }
}

//! `concord impact graph`: what rests on what, for Graphviz, for Mermaid, or as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use concord_domain::rules::impact::graph::{Graph, Source};
use concord_wire::payload::{Dependency, DependencyKind};
use concord_wire::{AgentId, CaseId, Timestamp};
use serde::Serialize;

use super::analyses;
use crate::shared::args::case_id;
use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::Failure;
use crate::shared::output::{self, one_line};

/// At most so many characters of a name or value stand in a drawing.
const SHOWN: usize = 60;

/// Arguments of `concord impact graph`.
#[derive(Debug, Args)]
#[command(after_help = "\
An arrow leads from what is used to the analysis that uses it, with the figure and the value
that was used. Boxes are analyses, ellipses assumptions, diamonds decisions.

Examples:
  concord impact graph c-42 | dot -Tsvg > c-42.svg
  concord impact graph c-42 --format mermaid
  concord impact graph c-42 --format json | jq '.analyses[].analysis_id'")]
pub(crate) struct GraphArgs {
    /// The case.
    #[arg(value_parser = case_id)]
    case: CaseId,
    /// The form.
    #[arg(long, value_enum, default_value_t = Format::Dot)]
    format: Format,
    /// The same as --format json.
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

/// A form of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For Graphviz.
    Dot,
    /// For Mermaid.
    Mermaid,
    /// For programs.
    Json,
}

/// An analysis for programs.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    published: &'a concord_wire::payload::PublishAnalysis,
    version: u32,
    author: &'a AgentId,
    at: Timestamp,
    used_by: Vec<String>,
}

/// The whole for programs.
#[derive(Debug, Serialize)]
struct ShownGraph<'a> {
    case_id: &'a CaseId,
    analyses: Vec<Shown<'a>>,
}

pub(super) async fn run(connection: &ConnectionArgs, args: &GraphArgs) -> Result<u8, Failure> {
    let state = analyses(connection, &args.case).await?;
    let graph = &state.graph;
    match args.format {
        _ if args.json => output::json(&shown(&args.case, graph))?,
        Format::Json => output::json(&shown(&args.case, graph))?,
        Format::Dot => output::print(&dot(graph))?,
        Format::Mermaid => output::print(&mermaid(graph))?,
    }
    Ok(0)
}

fn shown<'a>(case_id: &'a CaseId, graph: &'a Graph) -> ShownGraph<'a> {
    let analyses = graph.analyses().map(|(id, known)| {
        let source = Source::Analysis(id.clone());
        let used_by = graph.dependants(&source);
        Shown {
            published: &known.published,
            version: known.version,
            author: &known.author,
            at: known.at,
            used_by: used_by.map(ToString::to_string).collect(),
        }
    });
    ShownGraph {
        case_id,
        analyses: analyses.collect(),
    }
}

/// The nodes in the order of sources, each with the name that it has in the drawing: what others wrote is no part of a name.
fn nodes(graph: &Graph) -> BTreeMap<Source, String> {
    let used = graph.sources().cloned();
    let analyses = graph.analyses().map(|(id, _)| Source::Analysis(id.clone()));
    let mut names: BTreeMap<Source, String> = used
        .chain(analyses)
        .map(|one| (one, String::new()))
        .collect();
    for (place, name) in names.values_mut().enumerate() {
        *name = format!("n{place}");
    }
    names
}

/// What a node says: an analysis with its figures, the others with their names.
fn label(graph: &Graph, source: &Source) -> String {
    let Source::Analysis(id) = source else {
        return format!(
            "{} {}",
            source.kind().as_str(),
            one_line(source.name(), SHOWN)
        );
    };
    let Some(known) = graph.get(id) else {
        return id.to_string();
    };
    let figures = known.published.figures.iter();
    let figures = figures.map(|(name, value)| {
        format!(
            "{} {}",
            one_line(name, SHOWN),
            one_line(&value.to_string(), SHOWN)
        )
    });
    let figures: Vec<String> = figures.collect();
    match figures.is_empty() {
        true => format!("{id} ({})", known.author),
        false => format!("{id} ({}): {}", known.author, figures.join(", ")),
    }
}

/// What an arrow says: the figure, and the value that was used.
fn used(dependency: &Dependency) -> String {
    let metric = dependency.metric.as_deref();
    let metric = metric.map(|metric| one_line(metric, SHOWN));
    let value = dependency.value.as_ref();
    let value = value.map(|value| one_line(&value.to_string(), SHOWN));
    let parts: Vec<String> = metric.into_iter().chain(value).collect();
    parts.join(" ")
}

/// Each arrow: from what is used, to the analysis, with what it says.
fn arrows<'a>(
    graph: &'a Graph,
    names: &'a BTreeMap<Source, String>,
) -> impl Iterator<Item = (&'a str, &'a str, String)> {
    graph.analyses().flat_map(move |(id, known)| {
        let to = names.get(&Source::Analysis(id.clone()));
        let uses = known.published.depends_on.iter();
        uses.filter_map(move |dependency| {
            let from = names.get(&Source::of(dependency)?)?;
            Some((from.as_str(), to?.as_str(), used(dependency)))
        })
    })
}

fn dot(graph: &Graph) -> String {
    let names = nodes(graph);
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let mut text = String::from("digraph impact {\n  rankdir=LR;\n");
    for (source, name) in &names {
        let shape = match source.kind() {
            DependencyKind::Analysis => "box",
            DependencyKind::Assumption => "ellipse",
            DependencyKind::Decision => "diamond",
        };
        let label = quoted(&label(graph, source));
        let _ = writeln!(text, "  {name} [shape={shape}, label=\"{label}\"];");
    }
    for (from, to, said) in arrows(graph, &names) {
        let _ = writeln!(text, "  {from} -> {to} [label=\"{}\"];", quoted(&said));
    }
    text.push_str("}\n");
    text
}

fn mermaid(graph: &Graph) -> String {
    let names = nodes(graph);
    let quoted = |text: &str| {
        let entities = [
            ('&', "&amp;"),
            ('"', "&quot;"),
            ('<', "&lt;"),
            ('>', "&gt;"),
        ];
        entities
            .iter()
            .fold(text.to_owned(), |text, (from, to)| text.replace(*from, to))
    };
    let mut text = String::from("flowchart LR\n");
    for (source, name) in &names {
        let label = quoted(&label(graph, source));
        let (open, close) = match source.kind() {
            DependencyKind::Analysis => ("[", "]"),
            DependencyKind::Assumption => ("([", "])"),
            DependencyKind::Decision => ("{", "}"),
        };
        let _ = writeln!(text, "  {name}{open}\"{label}\"{close}");
    }
    for (from, to, said) in arrows(graph, &names) {
        let _ = match said.is_empty() {
            true => writeln!(text, "  {from} --> {to}"),
            false => writeln!(text, "  {from} -->|\"{}\"| {to}", quoted(&said)),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use concord_domain::rules::impact::graph::Analysis;
    use serde_json::{Value, json};

    use super::*;

    fn graph() -> Graph {
        let mut graph = Graph::default();
        let mut put = |published: Value| {
            let published = serde_json::from_value(published).unwrap();
            let ann = AgentId::new("ann").unwrap();
            graph.put(Analysis::new(
                published,
                1,
                ann,
                Timestamp::from_unix_millis(0),
            ));
        };
        let margin = json!({ "kind": "assumption", "id": "margin \"x\" <b>", "value": 25 });
        put(json!({
            "analysis_id": "dcf", "type": "valuation", "figures": { "target_price": 85 }, "depends_on": [margin],
        }));
        let dcf = json!({ "kind": "analysis", "id": "dcf", "metric": "target_price", "value": 85 });
        let decided = json!({ "kind": "decision", "id": "c-1" });
        put(json!({ "analysis_id": "memo", "type": "text", "depends_on": [dcf, decided] }));
        graph
    }

    #[test]
    fn graphviz_and_mermaid_draw_each_node_and_arrow_once() {
        let expected = "\
digraph impact {
  rankdir=LR;
  n0 [shape=diamond, label=\"decision c-1\"];
  n1 [shape=ellipse, label=\"assumption margin \\\"x\\\" <b>\"];
  n2 [shape=box, label=\"dcf (ann): target_price 85\"];
  n3 [shape=box, label=\"memo (ann)\"];
  n1 -> n2 [label=\"25\"];
  n2 -> n3 [label=\"target_price 85\"];
  n0 -> n3 [label=\"\"];
}
";
        assert_eq!(dot(&graph()), expected);
        let expected = "\
flowchart LR
  n0{\"decision c-1\"}
  n1([\"assumption margin &quot;x&quot; &lt;b&gt;\"])
  n2[\"dcf (ann): target_price 85\"]
  n3[\"memo (ann)\"]
  n1 -->|\"25\"| n2
  n2 -->|\"target_price 85\"| n3
  n0 --> n3
";
        assert_eq!(mermaid(&graph()), expected);
    }

    #[test]
    fn programs_read_what_was_published_and_who_uses_it() {
        let case = CaseId::new("c-1").unwrap();
        let graph = graph();
        let shown = json!(shown(&case, &graph));
        assert_eq!(shown["analyses"][0]["analysis_id"], "dcf");
        assert_eq!(shown["analyses"][0]["used_by"], json!(["memo"]));
        assert_eq!(shown["analyses"][1]["depends_on"][0]["value"], 85.0);
    }
}

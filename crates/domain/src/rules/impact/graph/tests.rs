use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::fixtures::{agent, start, token};

/// An analysis of this name that uses these others, and the assumption `margin` where one of them is called so.
fn analysis(id: &str, uses: &[&str]) -> Analysis {
    let depends_on: Vec<_> = uses
        .iter()
        .map(|used| match *used {
            "margin" => json!({ "kind": "assumption", "id": "Margin" }),
            other => json!({ "kind": "analysis", "id": other }),
        })
        .collect();
    let published = json!({ "analysis_id": id, "type": "test", "depends_on": depends_on });
    Analysis::new(
        serde_json::from_value(published).unwrap(),
        1,
        agent("ann"),
        start(),
    )
}

fn graph(rows: &[(&str, &[&str])]) -> Graph {
    let mut graph = Graph::default();
    for (id, uses) in rows {
        graph.put(analysis(id, uses));
    }
    graph
}

fn names(tokens: &[Token]) -> Vec<&str> {
    tokens.iter().map(Token::as_str).collect()
}

fn margin() -> Source {
    Source::Assumption("margin".into())
}

/// dcf and risk use the margin; peers use dcf; the memo uses risk and peers, and so the margin by two ways.
fn diamond() -> Graph {
    graph(&[
        ("dcf", &["margin"]),
        ("risk", &["margin"]),
        ("peers", &["dcf"]),
        ("memo", &["risk", "peers"]),
        ("other", &[]),
    ])
}

#[test]
fn each_affected_analysis_is_found_once_and_after_what_it_uses() {
    let graph = diamond();
    assert_eq!(
        names(&graph.affected(&[margin()])),
        ["dcf", "peers", "risk", "memo"]
    );
    let dcf = Source::Analysis(token("dcf"));
    assert_eq!(
        names(&graph.affected(std::slice::from_ref(&dcf))),
        ["peers", "memo"]
    );
    assert_eq!(
        names(&graph.affected(&[margin(), dcf])),
        ["dcf", "peers", "risk", "memo"]
    );
    assert!(
        graph
            .affected(&[Source::Assumption("growth".into())])
            .is_empty()
    );
    assert!(graph.affected(&[]).is_empty());
}

#[test]
fn a_cycle_is_named_from_its_analysis_back_to_itself() {
    let graph = diamond();
    let uses = |id: &str, uses: &[&str]| {
        let would_use = analysis(id, uses).published.depends_on;
        graph.cycle(&token(id), &would_use)
    };
    assert_eq!(
        names(&uses("dcf", &["margin", "memo"]).unwrap()),
        ["dcf", "memo", "peers", "dcf"]
    );
    assert_eq!(names(&uses("dcf", &["dcf"]).unwrap()), ["dcf", "dcf"]);
    assert_eq!(uses("memo", &["dcf", "risk", "peers", "other"]), None);
    assert_eq!(uses("new", &["memo"]), None);
}

#[test]
fn a_new_version_forgets_what_the_earlier_one_used() {
    let mut graph = diamond();
    graph.put(analysis("peers", &["other"]));
    assert_eq!(names(&graph.affected(&[margin()])), ["dcf", "risk", "memo"]);
    let dcf = Source::Analysis(token("dcf"));
    assert_eq!(graph.dependants(&dcf).count(), 0);
    assert!(graph.sources().all(|source| *source != dcf));
    // What was the wrong way round before is right now.
    assert_eq!(
        graph.cycle(
            &token("dcf"),
            &analysis("dcf", &["peers"]).published.depends_on
        ),
        None
    );
}

#[test]
fn a_chain_as_long_as_the_largest_graph_is_walked() {
    let name = |n: usize| format!("a{n:05}");
    let mut long = Graph::default();
    long.put(analysis(&name(0), &["margin"]));
    for n in 1..10_000 {
        let before = name(n - 1);
        long.put(analysis(&name(n), &[before.as_str()]));
    }
    let affected = long.affected(&[margin()]);
    assert_eq!(affected.len(), 10_000);
    assert!(affected.is_sorted());
    let last = name(9_999);
    let back = analysis(&name(0), &[last.as_str()]).published.depends_on;
    assert_eq!(long.cycle(&token(&name(0)), &back).unwrap().len(), 10_001);
}

proptest! {
    /// Analyses use only earlier ones, so that there is no cycle; what is affected is compared with a search over all edges.
    #[test]
    fn what_is_affected_is_what_a_plain_search_finds(
        edges in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..4), 1..20),
        with_margin in prop::collection::vec(any::<bool>(), 20),
    ) {
        let name = |n: usize| format!("a{n:02}");
        let mut graph = Graph::default();
        let mut rows: Vec<(Vec<usize>, bool)> = Vec::new();
        for (n, chosen) in edges.iter().enumerate() {
            let used: BTreeSet<usize> = if n == 0 { BTreeSet::new() } else { chosen.iter().map(|one| one.index(n)).collect() };
            let mut uses: Vec<String> = used.iter().map(|one| name(*one)).collect();
            if with_margin[n] {
                uses.push("margin".into());
            }
            let uses: Vec<&str> = uses.iter().map(String::as_str).collect();
            graph.put(analysis(&name(n), &uses));
            rows.push((used.into_iter().collect(), with_margin[n]));
        }
        let mut reached = vec![false; rows.len()];
        for n in 0..rows.len() {
            reached[n] = rows[n].1 || rows[n].0.iter().any(|used| reached[*used]);
        }
        let affected = graph.affected(&[margin()]);
        let expected: BTreeSet<String> = (0..rows.len()).filter(|n| reached[*n]).map(name).collect();
        let found: BTreeSet<String> = affected.iter().map(ToString::to_string).collect();
        prop_assert_eq!(&found, &expected);
        prop_assert_eq!(affected.len(), expected.len());
        for (place, id) in affected.iter().enumerate() {
            let uses = graph.get(id).unwrap().sources();
            for source in uses {
                if let Source::Analysis(used) = source
                    && let Some(at) = affected.iter().position(|one| *one == used)
                {
                    prop_assert!(at < place, "{} stands before {}", used, id);
                }
            }
        }
    }
}

//! Whether the models of an analysis can be used: they are about its figures, and about what it uses.

use std::collections::BTreeSet;

use concord_wire::Fault;
use concord_wire::payload::{EstimateModel, PublishAnalysis};

use super::estimate::{input_name, is_named, number};
use super::formula::Formula;

/// Longest time for which the answer of an agent is awaited, in milliseconds.
const WITHIN_MS_MAX: u64 = 3_600_000;

/// Checks that the models of an analysis are about its figures and what it uses. `pointer` is where they stand.
pub fn check_models(published: &PublishAnalysis, pointer: &str) -> Result<(), Fault> {
    let mut by_formula = BTreeSet::new();
    for (place, model) in published.models.iter().enumerate() {
        let place = format!("{pointer}/{place}");
        let metric = model.metric();
        let Some(figure) = published.figures.get(metric) else {
            let known = published.figures.keys().map(String::as_str);
            let known: Vec<&str> = known.collect();
            return Err(Fault::invalid(
                format!("{place}/metric"),
                format!("The analysis has no figure {metric:?}."),
                format!("Use one that it has: {}.", known.join(", ")),
            ));
        };
        match model {
            EstimateModel::Sensitivity { input, .. } | EstimateModel::Elasticity { input, .. } => {
                check_name(published, input, &format!("{place}/input"))?;
            }
            EstimateModel::Agent { within_ms, .. } => {
                let mut others = published.models.iter();
                if others.any(|other| other != model && other.metric() == metric) {
                    return Err(Fault::invalid(
                        format!("{place}/agent"),
                        format!("{metric:?} has another model as well."),
                        "Have an agent asked, or say how the figure follows from what is used.",
                    ));
                }
                if within_ms.is_some_and(|within| !(1..=WITHIN_MS_MAX).contains(&within)) {
                    return Err(Fault::invalid(
                        format!("{place}/within_ms"),
                        "An answer cannot be awaited so long.",
                        format!("Give 1 to {WITHIN_MS_MAX} milliseconds."),
                    ));
                }
            }
            EstimateModel::Formula { formula, .. } => {
                let place = format!("{place}/formula");
                let read = Formula::parse(formula).map_err(|error| {
                    Fault::invalid(
                        place.clone(),
                        format!("The formula cannot be read: {error}."),
                        "Write it with + - * / ^, parentheses, numbers and the names of what the analysis uses.",
                    )
                })?;
                for name in read.names() {
                    check_name(published, name, &place)?;
                }
                if number(figure).is_none() || !by_formula.insert(metric) {
                    return Err(Fault::invalid(
                        place,
                        format!("{metric:?} is a text, or has a formula already."),
                        "Give each figure that is a number at most one formula.",
                    ));
                }
            }
        }
    }
    Ok(())
}

fn check_name(published: &PublishAnalysis, name: &str, pointer: &str) -> Result<(), Fault> {
    let uses = &published.depends_on;
    let meant = uses.iter().filter(|used| is_named(used, name)).count();
    if meant == 1 {
        return Ok(());
    }
    let names: Vec<&str> = uses.iter().map(input_name).take(8).collect();
    Err(Fault::invalid(
        pointer,
        match meant {
            0 => format!("The analysis uses nothing that is called {name:?}."),
            _ => format!("The analysis uses {meant} things that are called {name:?}."),
        },
        format!(
            "Name one of {}, with its id and a dot before it where several have the name: dcf.target_price.",
            names.join(", ")
        ),
    ))
}

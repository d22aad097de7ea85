//! Whether the models of an analysis can be used: they are about its figures, and about what it uses.

use std::collections::BTreeSet;

use concord_wire::Fault;
use concord_wire::payload::{EstimateModel, PublishAnalysis};

use super::estimate::{input_name, is_named, number};
use super::formula::Formula;

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

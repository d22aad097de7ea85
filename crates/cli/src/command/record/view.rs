//! A track record as text.

use std::fmt::{Result, Write};

use concord_domain::rules::credibility::DATA_POINTS_MIN;
use concord_wire::payload::Credibility;
use concord_wire::payload::track_record::{Context, Version};

use crate::command::record::months::Month;
use crate::command::record::show::{InDomain, Shown};
use crate::shared::held_back::held_back;
use crate::shared::output::{
    Cell, DOUBTFUL, FAINT, GOOD, NAMED, PLAIN, STRONG, Table, count, one_line, styled,
};

/// At most so many characters of a name are shown.
const NAME: usize = 60;
/// At most so many months are shown.
const MONTHS: usize = 12;

/// The credibility in each domain, as text.
pub(super) fn text(shown: &Shown) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_record(&mut text, shown);
    text
}

fn write_record(out: &mut String, shown: &Shown) -> Result {
    let version = shown.version.as_str();
    let observations = count(shown.observations as u64, "observation");
    let forgotten = match shown.forgotten {
        0 => String::new(),
        older => format!(", {older} older ones forgotten"),
    };
    writeln!(
        out,
        "record {}  {observations}{forgotten}",
        styled(NAMED, &shown.agent_id)
    )?;
    let asked = asked(shown);
    let unused = match shown.version {
        Version::Simple if !asked.is_empty() => {
            "; only the comprehensive and the specialised version take that into account"
        }
        _ => "",
    };
    writeln!(out, "  version  {version}")?;
    if !asked.is_empty() {
        writeln!(
            out,
            "  asked    {}{}",
            asked.join(", "),
            styled(DOUBTFUL, unused)
        )?;
    }
    shown
        .domains
        .iter()
        .try_for_each(|domain| write_domain(out, domain))
}

/// The regime and circumstances on the command line.
fn asked(shown: &Shown) -> Vec<String> {
    let context: &Context = &shown.context;
    let regime = [("regime", shown.regime.as_deref())].into_iter();
    let all = regime.chain(context.dimensions());
    let by_alert = shown.regime_of_alert.as_ref();
    let by_alert = by_alert.map(|alert| format!("the present regime, by the alert {alert}"));
    all.filter_map(|(name, value)| Some(format!("{name} {}", one_line(value?, NAME))))
        .chain(by_alert)
        .collect()
}

fn write_domain(
    out: &mut String,
    InDomain {
        domain,
        credibility,
        months,
    }: &InDomain,
) -> Result {
    let Credibility {
        score,
        interval,
        data_points,
        ..
    } = credibility;
    let score = styled(STRONG, format!("{score:.3}"));
    let between = styled(
        FAINT,
        format!("(95%: {:.3} to {:.3})", interval.low, interval.high),
    );
    writeln!(
        out,
        "\n{}  {score} {between}",
        styled(STRONG, one_line(domain, NAME))
    )?;
    let mut table = Table::new(["FACTOR", "VALUE", "BASIS", "POINTS", "WHY"]).indented("  ");
    for factor in &credibility.factors {
        let style = if factor.applied { PLAIN } else { FAINT };
        table.row([
            Cell::text(factor.name.as_str()).with(style),
            Cell::number(format!("{:.3}", factor.value)).with(style),
            Cell::number(
                factor
                    .basis
                    .map_or("-".to_owned(), |basis| format!("{basis:.3}")),
            )
            .with(style),
            Cell::number(format!("{:.1}", factor.data_points)).with(style),
            Cell::text(&factor.explanation).with(style),
        ]);
    }
    write!(out, "{table}")?;
    if let Some(one) = &credibility.held_back {
        writeln!(out, "  {}", styled(DOUBTFUL, held_back(one)))?;
    }
    // Never rounded up to what is needed.
    let tenths = (data_points * 10.0).floor() / 10.0;
    let verdict = if *data_points >= DATA_POINTS_MIN {
        styled(
            GOOD,
            format!("{tenths:.1} data points: enough to decide a debate by credibility"),
        )
    } else {
        styled(
            DOUBTFUL,
            format!("{tenths:.1} data points: {DATA_POINTS_MIN} are needed to decide a debate"),
        )
    };
    writeln!(out, "  {verdict}")?;
    write_months(out, months)
}

/// How often it was right in the last months with observations.
fn write_months(out: &mut String, months: &[Month]) -> Result {
    let mut table = Table::new(["MONTH", "RIGHT", "OF", "ACCURACY", "95%"]).indented("  ");
    let earlier = months.len().saturating_sub(MONTHS);
    for month in months.iter().skip(earlier) {
        let (rate, share) = (&month.rate, month.rate.share().unwrap_or(0.0));
        let interval = format!("{:.2} to {:.2}", rate.interval.low, rate.interval.high);
        table.row([
            Cell::text(&month.month),
            Cell::number(rate.right),
            Cell::number(rate.known),
            Cell::number(format!("{share:.2}")),
            Cell::text(interval).with(FAINT),
        ]);
    }
    if earlier > 0 {
        let line = format!(
            "and {} before; --json has all",
            count(earlier as u64, "month")
        );
        return writeln!(out, "{table}  {}", styled(FAINT, line));
    }
    write!(out, "{table}")
}

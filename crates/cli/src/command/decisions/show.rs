//! `concord decisions show`: one entry of the decision log.

use std::fmt::{Result as Written, Write};

use clap::Args;
use concord_runtime::Broker;
use concord_wire::CaseId;
use concord_wire::payload::Provisional;

use super::list::{by, code};
use super::log::{self, Entered};
use crate::shared::args::JsonArg;
use crate::shared::case_file;
use crate::shared::debate_file::{reasons_of, resolution_text};
use crate::shared::failure::Failure;
use crate::shared::output::{BAD, FAINT, GOOD, NAMED, STRONG, one_line, styled};

/// Arguments of `concord decisions show`.
#[derive(Debug, Args)]
#[command(after_help = "Example: concord decisions show c-42-3 --json")]
pub(crate) struct ShowArgs {
    /// The entry: the id of the case and the number, for example c-42-3.
    #[arg(value_parser = entry_id)]
    entry: EntryId,
    #[command(flatten)]
    json: JsonArg,
}

/// The id of an entry, in its parts.
#[derive(Debug, Clone, PartialEq)]
struct EntryId {
    case: CaseId,
    number: u64,
}

fn entry_id(text: &str) -> Result<EntryId, String> {
    let form = || "an entry is named by case and number, for example c-42-3".to_owned();
    let (case, number) = text.rsplit_once('-').ok_or_else(form)?;
    let number = number.parse().map_err(|_| form())?;
    Ok(EntryId {
        case: CaseId::new(case).map_err(|error| error.to_string())?,
        number,
    })
}

pub(super) async fn run(broker: &Broker, args: &ShowArgs) -> Result<u8, Failure> {
    let EntryId { case, number } = &args.entry;
    let entries = match log::read(broker, Some(case)).await {
        Ok(entries) => entries,
        Err(failure) => return Err(whole_case(broker, &args.entry).await.unwrap_or(failure)),
    };
    let entered = entries
        .iter()
        .find(|entered| entered.entry.number == *number);
    let entered = entered.ok_or_else(|| {
        let known = entries.len();
        Failure::failed(format!(
            "case {case} has no entry {number} in its decision log, which has {known}; see `concord decisions list {case}`"
        ))
    })?;
    args.json.print(entered, text)?;
    Ok(code(std::slice::from_ref(entered)))
}

/// The failure where the entry is a case whose id ends with a number, as many do.
async fn whole_case(broker: &Broker, EntryId { case, number }: &EntryId) -> Option<Failure> {
    let whole = CaseId::new(format!("{case}-{number}")).ok()?;
    case_file::existing(broker, &whole).await.ok()?;
    Some(Failure::failed(format!(
        "{whole} is a case; `concord decisions list {whole}` has its entries, the first of which is {whole}-1"
    )))
}

fn text(entered: &Entered) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_entry(&mut text, entered);
    text
}

fn write_entry(out: &mut String, entered: &Entered) -> Written {
    let Entered { entry, faults, .. } = entered;
    write_decision(out, entered)?;
    if let Some(provisional) = &entry.provisional {
        write_provisional(out, provisional)?;
    }
    writeln!(out, "\n  previous    {}", or_none(entry.previous.clone()))?;
    let checked = if faults.is_empty() {
        styled(GOOD, "as it was written")
    } else {
        styled(BAD, "WRONG")
    };
    writeln!(out, "  hash        {}  {checked}", entry.hash)?;
    faults
        .iter()
        .try_for_each(|fault| writeln!(out, "              {}", styled(BAD, fault)))
}

fn or_none(text: String) -> String {
    if text.is_empty() {
        "-".to_owned()
    } else {
        text
    }
}

fn write_decision(out: &mut String, entered: &Entered) -> Written {
    let Entered { case_id, entry, .. } = entered;
    writeln!(
        out,
        "entry {}  {}",
        styled(NAMED, &entry.entry_id),
        styled(STRONG, one_line(&entry.topic, 4_096))
    )?;
    writeln!(out, "  case        {case_id}")?;
    writeln!(out, "  debate      {}", entry.debate_id)?;
    writeln!(out, "  at          {}", entry.at)?;
    writeln!(out, "  level       {}", entry.level)?;
    writeln!(out, "  method      {}", entry.method)?;
    writeln!(
        out,
        "  position    {}",
        entry
            .position
            .as_ref()
            .map_or("none".to_owned(), resolution_text)
    )?;
    let confidence = entry
        .confidence
        .map_or("-".to_owned(), |confidence| format!("{confidence:.2}"));
    writeln!(out, "  confidence  {confidence}")?;
    writeln!(
        out,
        "  impact      {}",
        or_none(one_line(&entry.impact.join(", "), 4_096))
    )?;
    if entry.by.is_some() {
        let by = by(entry);
        let key = entry.key.as_ref();
        let signed = key.map_or_else(String::new, |key| format!("  signed (key {key})"));
        writeln!(out, "  by          {by}{}", styled(FAINT, signed))?;
    }
    for reason in reasons(entered) {
        writeln!(out, "  because     {reason}")?;
    }
    for item in &entry.evidence {
        writeln!(out, "  evidence    {}", one_line(item, 4_096))?;
    }
    if entry.evidence_omitted > 0 {
        writeln!(
            out,
            "              {}",
            styled(FAINT, format!("and {} more", entry.evidence_omitted))
        )?;
    }
    Ok(())
}

/// Why, of each of two reviewers the own reason.
fn reasons(entered: &Entered) -> Vec<String> {
    let entry = &entered.entry;
    let Some(rationale) = &entry.rationale else {
        return Vec::new();
    };
    match (&entry.first_reviewer, &entry.by) {
        (Some(first), Some(by)) => {
            let why = entered.first_rationale.as_deref();
            reasons_of(Some((first, why)), (by, rationale), 4_096)
        }
        _ => vec![one_line(rationale, 4_096)],
    }
}

fn write_provisional(out: &mut String, provisional: &Provisional) -> Written {
    writeln!(out, "\n{}", styled(STRONG, "Provisional"))?;
    writeln!(
        out,
        "  because     {}",
        one_line(&provisional.rationale, 4_096)
    )?;
    for alternative in &provisional.alternatives {
        writeln!(out, "  alternative {}", resolution_text(alternative))?;
    }
    match &provisional.review_at {
        None => writeln!(out, "  review at   no gate")?,
        Some(gate) => {
            let gate = one_line(gate, 200);
            writeln!(out, "  review at   {gate}")?;
            writeln!(out, "  window      until gate \"{gate}\" is passed")?;
            writeln!(out, "  awaits gate from {}", provisional.until)?;
        }
    }
    writeln!(
        out,
        "  dependants  {}",
        or_none(one_line(&provisional.dependants.join(", "), 4_096))
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::decisions::log::tests::entries;

    #[test]
    fn an_entry_is_named_by_case_and_number() {
        let entry = entry_id("c-42-3").unwrap();
        assert_eq!((entry.case.as_str(), entry.number), ("c-42", 3));
        for wrong in ["c", "c-x", "-3", "c.d-3", "c--"] {
            assert!(entry_id(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn everything_in_an_entry_is_shown() {
        let entry = entries().remove(0);
        let entered = Entered {
            case_id: CaseId::new("c-1").unwrap(),
            entry,
            first_rationale: None,
            faults: vec!["It is wrong.".into()],
        };
        let text = anstream::adapter::strip_str(&text(&entered)).to_string();
        for seen in [
            "entry c-1-1  Price, target",
            "=90  [90] (ben, cem)",
            "alternative 120 (ann)",
            "WRONG",
            "It is wrong.",
        ] {
            assert!(text.contains(seen), "{seen:?} is missing:\n{text}");
        }
    }

    #[test]
    fn each_of_two_reviewers_has_the_own_reason() {
        let mut entry = entries().remove(0);
        entry.first_reviewer = Some(concord_wire::AgentId::fixed("gail"));
        let entered = Entered {
            case_id: CaseId::new("c-1").unwrap(),
            entry,
            first_rationale: Some("the annex".into()),
            faults: vec![],
        };
        let text = anstream::adapter::strip_str(&text(&entered)).to_string();
        assert!(
            text.contains("  because     gail: the annex\n  because     eva: so\n"),
            "{text}"
        );
    }
}

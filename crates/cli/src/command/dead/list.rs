//! `concord dead list`: the dead letters, the newest first.

use concord_events::dead_letter::DeadLetter;
use concord_runtime::Broker;

use super::letter::Letters;
use super::{Letter, ListArgs, letters};
use crate::shared::failure::Failure;
use crate::shared::output::{
    self, BAD, Cell, DOUBTFUL, FAINT, NAMED, Table, ago, one_line, styled,
};

pub(super) async fn run(broker: &Broker, args: &ListArgs) -> Result<u8, Failure> {
    let Letters {
        all: mut letters,
        others,
    } = letters(broker).await?;
    let all = letters.len();
    letters.retain(|letter| args.all || letter.about.retried.is_none());
    letters.reverse();
    if args.json.json {
        let about: Vec<&DeadLetter> = letters.iter().map(|letter| &letter.about).collect();
        output::json(&about)?;
        return Ok(0);
    }
    let mut text = if letters.is_empty() {
        "There are no dead letters.\n".to_owned()
    } else {
        table(&letters)
    };
    if letters.len() < all {
        let note = format!(
            "{} more were sent again; --all lists them",
            all - letters.len()
        );
        text.push_str(&format!("{}\n", styled(FAINT, note)));
    }
    if others > 0 {
        let note = format!(
            "{} among them that no service has put there, passed over",
            output::count(others, "message")
        );
        text.push_str(&format!("{}\n", styled(FAINT, note)));
    }
    output::print(&text)?;
    Ok(0)
}

fn table(letters: &[Letter]) -> String {
    let mut table = Table::new([
        "NUMBER", "AGE", "SERVICE", "CONSUMER", "REASON", "SUBJECT", "AT", "ERROR",
    ]);
    for letter in letters {
        let about = &letter.about;
        let reason = Cell::text(if about.retried.is_some() {
            "sent again"
        } else {
            letter.reason()
        });
        table.row([
            Cell::number(about.sequence).with(NAMED),
            Cell::number(about.at.map(ago).unwrap_or_default()),
            Cell::text(about.service),
            Cell::text(one_line(&about.consumer, 70)),
            reason.with(if letter.is_failure() { BAD } else { DOUBTFUL }),
            Cell::text(one_line(&about.subject, 70)),
            Cell::text(&about.pointer),
            Cell::text(one_line(&about.error, 80)),
        ]);
    }
    table.to_string()
}

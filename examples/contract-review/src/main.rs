//! `panel-agent ROLE`: one agent of the sample panel, over standard input and output.

use std::io;
use std::process::ExitCode;

use contract_review_panel::protocol;
use contract_review_panel::reviewer::Reviewer;
use contract_review_panel::rules::Error;

const USAGE: &str = "\
Reads one JSON message a line from standard input and answers each with one line of JSON.

Usage: panel-agent ROLE

Roles: clause_extractor, risk_assessor, negotiation_advisor, executive_reviewer";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(argument), None) = (arguments.next(), arguments.next()) else {
        eprintln!("panel-agent: exactly one ROLE is needed; see panel-agent --help");
        return ExitCode::from(2);
    };
    if matches!(argument.as_str(), "-h" | "--help") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let reviewer = match Reviewer::load(&argument) {
        Ok(reviewer) => reviewer,
        Err(error) => {
            eprintln!("panel-agent: {error}");
            let is_usage = matches!(error, Error::UnknownRole(_));
            return ExitCode::from(if is_usage { 2 } else { 1 });
        }
    };
    match protocol::serve(&reviewer, io::stdin().lock(), io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("panel-agent: {error}");
            ExitCode::FAILURE
        }
    }
}

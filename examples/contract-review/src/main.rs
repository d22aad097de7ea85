//! `panel-agent ROLE`: one reader of the sample panel, over standard input and output.

use std::io;
use std::process::ExitCode;

use contract_review_panel::profile::Role;
use contract_review_panel::protocol;

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
    let Some(role) = Role::parse(&argument) else {
        let roles = Role::ALL.map(Role::name).join(", ");
        eprintln!("panel-agent: unknown role {argument:?}; the roles are {roles}");
        return ExitCode::from(2);
    };
    match protocol::serve(role, io::stdin().lock(), io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) if why.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("panel-agent: {why}");
            ExitCode::FAILURE
        }
    }
}

//! Reading the command line: whoever says with `--as` who they are need not say it again.

use clap::{Arg, Command, CommandFactory, FromArgMatches};
use concord_wire::AgentId;

use super::Arguments;

/// The arguments that say who acts: `--by` and, of a person who rules, `--expert`.
const ACTORS: [&str; 2] = ["by", "expert"];

impl Arguments {
    /// Reads the command line of this process. What is wrong with it is printed, and ends the process with code 2.
    pub(crate) fn read() -> Self {
        let command = Self::command();
        let given = std::env::args_os().skip(1);
        let given = given.map(|argument| argument.to_string_lossy().into_owned());
        let command = match caller(given, std::env::var("CONCORD_AS").ok()) {
            // The reader of the command line keeps defaults for as long as the process lives.
            Some(caller) => acting(command, caller.to_string().leak()),
            None => command,
        };
        Self::from_arg_matches(&command.get_matches()).unwrap_or_else(|error| error.exit())
    }
}

/// Who `--as` or the environment says gives the command. A name that is none is left for the reader of `--as` to refuse.
fn caller(mut given: impl Iterator<Item = String>, otherwise: Option<String>) -> Option<AgentId> {
    let mut named = otherwise;
    while let Some(argument) = given.next() {
        match argument.as_str() {
            "--" => break,
            "--as" => named = given.next(),
            _ => {
                let name = argument.strip_prefix("--as=").map(str::to_owned);
                named = name.or(named);
            }
        }
    }
    AgentId::new(named?).ok()
}

/// The command line in which the caller is who acts, where nobody else is named.
fn acting(command: Command, caller: &'static str) -> Command {
    let verbs = command
        .get_subcommands()
        .map(|verb| verb.get_name().to_owned());
    let verbs: Vec<String> = verbs.collect();
    let with_default = |argument: Arg| match ACTORS.contains(&argument.get_id().as_str()) {
        true => argument.required(false).default_value(caller),
        false => argument,
    };
    let command = command.mut_args(with_default);
    verbs.into_iter().fold(command, |command, verb| {
        command.mut_subcommand(verb, |verb| acting(verb, caller))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<String> {
        let given = line.split(' ').map(str::to_owned);
        caller(given, Some("olga".into())).map(|caller| caller.to_string())
    }

    #[test]
    fn the_last_name_that_is_given_counts_and_then_the_environment() {
        for (line, expected) in [
            ("queue next", Some("olga")),
            ("--as eva queue next", Some("eva")),
            ("queue next --as=eva", Some("eva")),
            ("queue -- --as eva", Some("olga")),
            ("queue --as e.va", None),
        ] {
            assert_eq!(read(line).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn who_acts_is_the_caller_unless_another_is_named() {
        let given = |line: &str| {
            let command = acting(Arguments::command(), "eva");
            let matches = command.try_get_matches_from(line.split(' '));
            let matches = matches.unwrap();
            let (_, rule) = matches.subcommand().unwrap();
            rule.get_one::<AgentId>("expert").map(ToString::to_string)
        };
        let line = "concord rule d-1 --position p1 --rationale so";
        assert_eq!(given(line).as_deref(), Some("eva"));
        let other = format!("{line} --expert ben");
        assert_eq!(given(&other).as_deref(), Some("ben"));
    }
}

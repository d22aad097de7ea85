//! The command line: one module for each verb.

use clap::{Parser, Subcommand};

use crate::shared::connection::ConnectionArgs;
use crate::shared::failure::{EXIT_CODES, Failure};

mod agents;
mod alert;
mod archive;
mod ask;
mod audit;
mod backup;
mod board;
mod caller;
mod case;
mod challenge;
mod check;
mod commitment;
mod completions;
mod credentials;
mod dead;
mod deadlines;
mod debate;
mod decisions;
mod doctor;
mod expert;
mod gate;
mod impact;
mod keys;
mod memory;
mod metrics;
mod migrate;
mod outcome;
mod permissions;
mod person;
mod policy;
mod queue;
mod quota;
mod record;
mod redeliver;
mod replay;
mod rule;
mod task;
mod up;
mod wake;

/// Concord: agents and people settle their disagreements over NATS.
#[derive(Debug, Parser)]
#[command(name = "concord", version, after_help = format!("{EXIT_CODES}\n\n{EXAMPLES}"))]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

const EXAMPLES: &str = "\
Begin with:
  concord up
  concord case open case.json --wait";

/// The verbs of `concord`.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Start a local installation: a broker and the services, until Ctrl-C.
    Up(up::UpArgs),
    /// Open, list, show and follow cases.
    #[command(subcommand)]
    Case(case::CaseVerb),
    /// Open, list, show and cancel tasks, which strategies hand out to agents.
    #[command(subcommand)]
    Task(task::TaskVerb),
    /// Show, follow and write what everybody in a case shares under names.
    #[command(subcommand)]
    Board(board::BoardVerb),
    /// Read and write shared memory: what each agent knows, with its history, as of any snapshot.
    #[command(subcommand)]
    Memory(memory::MemoryVerb),
    /// Alert everybody at once; list and show alerts.
    #[command(subcommand)]
    Alert(alert::AlertVerb),
    /// Show who has committed to what.
    #[command(subcommand)]
    Commitment(commitment::CommitmentVerb),
    /// Show what the analyses of a case rest on, and what changed decisions do to them; have them done again.
    #[command(subcommand)]
    Impact(impact::ImpactVerb),
    /// Show debates, and hold, resume, extend or cancel them.
    #[command(subcommand)]
    Debate(debate::DebateVerb),
    /// Register people and what they may do; list, show, suspend and resume them.
    #[command(subcommand)]
    Person(person::PersonVerb),
    /// Store the rules that cases are opened with; list, show and compare them.
    #[command(subcommand)]
    Policy(policy::PolicyVerb),
    /// Show what openers have, beside what each of them may have.
    Quota(quota::QuotaArgs),
    /// List the people who rule, and the debates that they have.
    #[command(subcommand)]
    Expert(expert::ExpertVerb),
    /// Show which debates wait for a person, and who has which.
    Queue(queue::QueueArgs),
    /// Rule on a debate, as the expert who has it.
    Rule(rule::RuleArgs),
    /// Dispute a finding of another agent.
    Challenge(challenge::ChallengeArgs),
    /// Report what proved right after a debate; it enters the track records of its parties.
    Outcome(outcome::OutcomeArgs),
    /// Review what stands provisionally, and let a case pass its gates.
    #[command(subcommand)]
    Gate(gate::GateVerb),
    /// List, show and export the decision log.
    #[command(subcommand)]
    Decisions(decisions::DecisionsVerb),
    /// List the registered agents and their status; register an agent, or take it off the register.
    Agents(agents::AgentsArgs),
    /// Ask the group a question, and collect the answers of those whom it wakes.
    Ask(ask::AskArgs),
    /// Explain whom messages wake, and why.
    #[command(subcommand)]
    Wake(wake::WakeVerb),
    /// Show how well agents help each other, beside what the specification aims at.
    Metrics(metrics::MetricsArgs),
    /// Print what the NATS user of an agent or person may do, for the broker's configuration.
    Permissions(permissions::PermissionsArgs),
    /// Make and issue credentials for a broker in operator mode: services, agents, people and operators, tenant by tenant.
    #[command(subcommand)]
    Credentials(credentials::CredentialsVerb),
    /// List the deadlines that the broker holds.
    Deadlines(deadlines::DeadlinesArgs),
    /// Look for faults: broker, streams, consumers, services, clocks, dead letters; give advice about each.
    Doctor(doctor::DoctorArgs),
    /// List, show and retry what could not be processed.
    #[command(subcommand)]
    Dead(dead::DeadVerb),
    /// Have the broker hand out again what was stored since some time, after it had lost deliveries.
    Redeliver(redeliver::RedeliverArgs),
    /// Show how often an agent was right, and how far it is therefore to be believed.
    #[command(subcommand)]
    Record(record::RecordVerb),
    /// Rebuild cases and count votes again from the stored events, and report what differs.
    Replay(replay::ReplayArgs),
    /// Check the invariants over everything that is stored.
    Check(check::CheckArgs),
    /// Keep heads and bundles of what is stored elsewhere, and check a bundle without the broker.
    #[command(subcommand)]
    Audit(audit::AuditVerb),
    /// Show, list and check archived cases, and write one of them to files.
    #[command(subcommand)]
    Archive(archive::ArchiveVerb),
    /// Show which streams are not as they are defined, and change them on demand.
    Migrate(migrate::MigrateArgs),
    /// Copy everything that is kept in the broker into a directory.
    Backup(backup::BackupArgs),
    /// Put the copy into an empty broker.
    Restore(backup::RestoreArgs),
    /// Make keys that sign.
    #[command(subcommand)]
    Keys(keys::KeysVerb),
    /// Print what completes this command in a shell.
    Completions(completions::CompletionsArgs),
}

/// Runs the verb; the exit code. What the broker does not let the command do ends it.
pub(crate) async fn run(Arguments { connection, verb }: Arguments) -> Result<u8, Failure> {
    // They undo what they have begun before they end, and look themselves.
    let ends_itself = matches!(verb, Verb::Backup(_) | Verb::Restore(_));
    tokio::select! {
        done = run_verb(&connection, verb) => done,
        denied = connection.denied(), if !ends_itself => Err(denied),
    }
}

async fn run_verb(connection: &ConnectionArgs, verb: Verb) -> Result<u8, Failure> {
    match verb {
        Verb::Up(args) => up::run(connection, args).await,
        Verb::Case(verb) => case::run(connection, verb).await,
        Verb::Task(verb) => task::run(connection, verb).await,
        Verb::Board(verb) => board::run(connection, verb).await,
        Verb::Memory(verb) => memory::run(connection, verb).await,
        Verb::Alert(verb) => alert::run(connection, verb).await,
        Verb::Commitment(verb) => commitment::run(connection, verb).await,
        Verb::Impact(verb) => impact::run(connection, verb).await,
        Verb::Policy(verb) => policy::run(connection, verb).await,
        Verb::Quota(args) => quota::run(connection, args).await,
        Verb::Debate(verb) => debate::run(connection, verb).await,
        Verb::Person(verb) => person::run(connection, verb).await,
        Verb::Expert(verb) => expert::run(connection, verb).await,
        Verb::Queue(args) => queue::run(connection, args).await,
        Verb::Rule(args) => rule::run(connection, args).await,
        Verb::Permissions(args) => permissions::run(connection, &args),
        Verb::Credentials(verb) => credentials::run(connection, verb).await,
        Verb::Outcome(args) => outcome::run(connection, args).await,
        Verb::Challenge(args) => challenge::run(connection, &args).await,
        Verb::Gate(verb) => gate::run(connection, verb).await,
        Verb::Decisions(verb) => decisions::run(connection, verb).await,
        Verb::Agents(args) => agents::run(connection, args).await,
        Verb::Ask(args) => ask::run(connection, args).await,
        Verb::Wake(verb) => wake::run(connection, verb).await,
        Verb::Metrics(args) => metrics::run(connection, args).await,
        Verb::Deadlines(args) => deadlines::run(connection, &args).await,
        Verb::Doctor(args) => doctor::run(connection, &args).await,
        Verb::Dead(verb) => dead::run(connection, verb).await,
        Verb::Redeliver(args) => redeliver::run(connection, &args).await,
        Verb::Record(verb) => record::run(connection, verb).await,
        Verb::Replay(args) => replay::run(connection, &args).await,
        Verb::Check(args) => check::run(connection, &args).await,
        Verb::Audit(verb) => audit::run(connection, verb).await,
        Verb::Archive(verb) => archive::run(connection, verb).await,
        Verb::Migrate(args) => migrate::run(connection, &args).await,
        Verb::Backup(args) => backup::run(connection, &args).await,
        Verb::Restore(args) => backup::restore(connection, &args).await,
        Verb::Keys(verb) => keys::run(&verb),
        Verb::Completions(args) => completions::run(&args),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory};

    use super::*;

    /// The verbs that do something and do not take `--json`, with what stands before them.
    fn without_json(command: &Command, before: &str, found: &mut Vec<String>) {
        let name = format!("{before} {}", command.get_name());
        let mut verbs = command
            .get_subcommands()
            .filter(|verb| !verb.is_hide_set())
            .peekable();
        let is_verb = verbs.peek().is_none() || !command.is_subcommand_required_set();
        let takes_json = command.get_arguments().any(|one| one.get_id() == "json");
        if is_verb && !takes_json {
            found.push(name.trim_start().to_owned());
        }
        verbs.for_each(|verb| without_json(verb, &name, found));
    }

    #[test]
    fn every_verb_with_a_result_takes_json() {
        let mut found = Vec::new();
        without_json(&Arguments::command(), "", &mut found);
        assert_eq!(found, ["concord completions"]);
    }
}

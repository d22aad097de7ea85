//! The command line.

use clap::{Args, Parser, Subcommand};
use concord_wire::{AgentId, DebateId};

use crate::connection::ConnectionArgs;
use crate::{
    agents, bench, case, challenge, check, dead, deadlines, debate, decisions, demo, doctor, eval,
    expert, gate, metrics, outcome, panel, permissions, queue, record, replay, rule, up, wake,
};

/// Concord: agents and people settle their disagreements over NATS.
#[derive(Debug, Parser)]
#[command(name = "concord", version, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

const EXIT_CODES: &str = "\
Exit codes:
   0  done
   1  it failed, or faults were found
   2  the command line is wrong, or a file is missing
  65  the input is empty or malformed
  69  no broker answers

Begin with:
  concord up
  concord case open case.json --wait";

/// Output for programs.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct JsonArg {
    /// Print JSON instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Reads the id of an agent or a person from the command line.
pub(crate) fn agent_id(text: &str) -> Result<AgentId, String> {
    AgentId::new(text).map_err(|error| error.to_string())
}

/// Reads the id of a debate from the command line.
pub(crate) fn debate_id(text: &str) -> Result<DebateId, String> {
    DebateId::new(text).map_err(|error| error.to_string())
}

/// Reads JSON from the command line.
pub(crate) fn json_value(text: &str) -> Result<serde_json::Value, String> {
    serde_json::from_str(text)
        .map_err(|error| format!("it is not JSON ({error}); write a text as '\"text\"'"))
}

/// Reads words that must say something from the command line.
pub(crate) fn words(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        Err("say it in words".to_owned())
    } else {
        Ok(text.to_owned())
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Start a local installation: a broker and the services, until Ctrl-C.
    Up(up::UpArgs),
    /// Open, list, show and follow cases.
    #[command(subcommand)]
    Case(case::CaseVerb),
    /// Show debates, and hold, resume, extend or cancel them.
    #[command(subcommand)]
    Debate(debate::DebateVerb),
    /// Register people who rule, and list them.
    #[command(subcommand)]
    Expert(expert::ExpertVerb),
    /// Show which debates wait for a person, and who has which.
    Queue(queue::QueueArgs),
    /// Rule on a debate, as the expert who has it.
    Rule(rule::RuleArgs),
    /// Dispute a finding of another agent.
    Challenge(challenge::ChallengeArgs),
    /// Say what proved right after a debate; it enters the track records of its parties.
    Outcome(outcome::OutcomeArgs),
    /// Review what stands provisionally, and let a case pass its gates.
    #[command(subcommand)]
    Gate(gate::GateVerb),
    /// List, show and export the decision log.
    #[command(subcommand)]
    Decisions(decisions::DecisionsVerb),
    /// List the agents that are registered and how they are; enter one, or take one off.
    Agents(agents::AgentsArgs),
    /// Say whom messages wake, and why.
    #[command(subcommand)]
    Wake(wake::WakeVerb),
    /// Show how well agents help each other, beside what the specification aims at.
    Metrics(metrics::MetricsArgs),
    /// Print what the NATS user of an agent or person may do, for the broker's configuration.
    Permissions(permissions::PermissionsArgs),
    /// List the deadlines that the broker holds.
    Deadlines(deadlines::DeadlinesArgs),
    /// Look for faults: broker, streams, consumers, services, clocks, dead letters; says what to do about each.
    Doctor(doctor::DoctorArgs),
    /// List, show and retry what could not be processed.
    #[command(subcommand)]
    Dead(dead::DeadVerb),
    /// Show how often an agent was right, and how far it is therefore to be believed.
    #[command(subcommand)]
    Record(record::RecordVerb),
    /// Rebuild cases and count votes again from the stored facts, and report what differs.
    Replay(replay::ReplayArgs),
    /// Check the invariants over everything that is stored.
    Check(check::CheckArgs),
    /// Measure steps, whole cases, latency and memory beside the raw broker.
    Bench(bench::BenchArgs),
    /// Measure how well Concord judges, on messages of which the truth is known.
    #[command(subcommand)]
    Eval(eval::EvalVerb),
    /// Have the sample panel of five agents review contracts.
    #[command(subcommand)]
    Panel(panel::PanelVerb),
    /// Watch the sample panel review one contract; see scripts/demo.
    #[command(hide = true)]
    Demo(demo::DemoArgs),
}

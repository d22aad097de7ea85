//! People work with nothing but the users that `concord permissions` prints: they see what their role may see and do what it is
//! for, by the command, in a shared account and in accounts of their own.

use concord_testkit::{
    COMMAND_MAX, CommandOutput, Message, TestInstallation, command, concord, finish, programs_of,
    until,
};
use concord_wire::AgentId;
use concord_wire::subject::SubjectSpace;
use serde_json::{Value, json};

use crate::permissions::PATIENCE;
use crate::permissions::user::{User, agents, start};

mod asking;
mod doing;
mod limits;

use asking::check_asking;
use doing::{challenged, check_opener, check_review, check_ruling, check_views};
use limits::{check_addresses, check_denied, check_failures, check_pages, check_user};

/// Whether people share an account or have accounts of their own.
#[derive(Clone, Copy, PartialEq)]
enum Layout {
    Shared,
    Apart,
}

/// The people of the tests, by the first letter of their role; `nora` has a reviewer's user and is not registered.
struct Cast {
    amy: AgentId,
    rob: AgentId,
    olga: AgentId,
    otto: AgentId,
    adam: AgentId,
    nora: AgentId,
}

impl Cast {
    fn new() -> Self {
        let [amy, rob, olga, otto, adam, nora] =
            agents(["amy", "rob", "olga", "otto", "adam", "nora"]);
        Self {
            amy,
            rob,
            olga,
            otto,
            adam,
            nora,
        }
    }

    /// Everybody with the role that their user is printed for.
    fn roles(&self) -> [(&AgentId, &'static str); 6] {
        [
            (&self.amy, "arbiter"),
            (&self.rob, "reviewer"),
            (&self.olga, "opener"),
            (&self.otto, "outcome_source"),
            (&self.adam, "auditor"),
            (&self.nora, "reviewer"),
        ]
    }

    /// The configuration of the broker, as the command prints it.
    fn config(&self, layout: Layout) -> String {
        let printed = |arguments: &[&str]| {
            let output = concord(arguments);
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).expect("text")
        };
        if layout == Layout::Shared {
            let user = |(name, role): (&AgentId, &str)| {
                let user = printed(&["permissions", "--role", role, name.as_str(), "--json"]);
                let user: Value = serde_json::from_str(&user).expect("JSON");
                json!({ "user": name, "password": "x", "permissions": user["permissions"] })
            };
            let mut users: Vec<Value> = self.roles().into_iter().map(user).collect();
            users.push(json!({ "user": "services", "password": "x" }));
            let users = json!({ "users": users });
            return format!("authorization: {users}\nno_auth_user: services");
        }
        let people = self.roles().map(|(name, role)| format!("{name}={role}"));
        let mut arguments = vec!["permissions", "--accounts"];
        for person in &people {
            arguments.extend(["--person", person.as_str()]);
        }
        let users = self.roles().map(|(name, _)| name.to_string()).into_iter();
        let users = users.chain(["concord".to_owned()]);
        let passwords: String = users
            .map(|user| format!("PASSWORD_{} = \"x\"\n", user.replace('-', "_")))
            .collect();
        format!("{passwords}{}no_auth_user: concord\n", printed(&arguments))
    }
}

/// An installation whose broker knows the people of the tests.
struct Stage {
    installation: TestInstallation,
    cast: Cast,
    shares_account: bool,
}

/// The words of a command line; words in single quotes are one.
fn words(line: &str) -> Vec<String> {
    let parts = line.split('\'').enumerate();
    let words = parts.flat_map(|(place, part)| match place % 2 {
        1 => vec![part.to_owned()],
        _ => part.split_whitespace().map(str::to_owned).collect(),
    });
    words.collect()
}

impl Stage {
    async fn start(layout: Layout) -> Self {
        let cast = Cast::new();
        let installation = start(cast.config(layout)).await;
        let amy = json!({ "agent_id": cast.amy, "contact": { "email": "amy@example.org" } });
        installation.register_expert(&amy).await;
        for (name, role) in cast.roles() {
            if name != &cast.amy && name != &cast.nora {
                installation.register(name.as_str(), &[role]).await;
            }
        }
        let shares_account = layout == Layout::Shared;
        Self {
            installation,
            cast,
            shares_account,
        }
    }

    /// Runs the command as somebody, with the user of the broker that is printed for them.
    async fn run(&self, who: &AgentId, line: &str) -> CommandOutput {
        self.run_nameless(who, &format!("{line} --as {who}")).await
    }

    /// The same of somebody who does not say who they are.
    async fn run_nameless(&self, who: &AgentId, line: &str) -> CommandOutput {
        let server = self.installation.server_url();
        let server = server.replacen("nats://", &format!("nats://{who}:x@"), 1);
        let program = programs_of(&["concord-cli"]).join("concord");
        finish(
            command(program)
                .args(words(line))
                .args(["--server", &server]),
        )
        .await
    }

    async fn good(&self, who: &AgentId, line: &str) -> String {
        self.run(who, line).await.good()
    }

    async fn json(&self, who: &AgentId, line: &str) -> Value {
        self.run(who, &format!("{line} --json")).await.json()
    }

    /// Runs the command until its answer is as it should be.
    async fn until(&self, who: &AgentId, line: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let answered = until(line, COMMAND_MAX, async || {
            let answered = self.run(who, &format!("{line} --json")).await;
            // It may not know yet what it is asked for.
            if answered.code != 0 {
                return Err(answered.err);
            }
            let answer = answered.json();
            let done = is_it(&answer);
            done.then_some(answer.clone())
                .ok_or_else(|| answer.to_string())
        });
        answered.await.unwrap_or_else(|error| panic!("{error}"))
    }

    /// The command is refused with exit code 1 and says whom to ask.
    async fn refused(&self, who: &AgentId, line: &str, why: &str) {
        let error = self.run(who, line).await.refused(1);
        assert!(error.contains(why), "{who}: {line}: {error}");
        let asked = format!("concord person register {who} --role ");
        assert!(error.contains(&asked), "{who}: {line}: {error}");
    }

    /// Sends a message of a participant.
    async fn say(&self, case: &str, debate: &str, from: &str, kind: &str, payload: Value) {
        let message = Message::new(case, from, "debate-facilitator", kind, payload);
        let message = message.with("/correlation_id", debate);
        message.store(self.installation.client()).await;
    }
}

async fn work(layout: Layout) {
    let stage = Stage::start(layout).await;
    let ruled = challenged(&stage, 1).await;
    check_ruling(&stage, &ruled).await;
    let reviewed = challenged(&stage, 14_400).await;
    check_review(&stage, &reviewed).await;
    check_views(&stage, &ruled).await;
    check_opener(&stage, &reviewed).await;
    check_asking(&stage).await;
    let rob = &stage.cast.rob;
    let inbox = SubjectSpace::replies(rob);
    let mut user = User::connect_with_inbox(&stage.installation, rob, &inbox).await;
    check_pages(&stage, &user).await;
    check_addresses(&stage, &user, &ruled.debate).await;
    user.check_nothing_refused();
    check_user(&stage, &mut user).await;
    check_denied(&stage).await;
    check_failures(&stage).await;
    stage.installation.holds(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn people_work_with_the_users_that_are_printed_in_a_shared_account() {
    work(Layout::Shared).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn people_work_with_the_users_that_are_printed_in_accounts_of_their_own() {
    work(Layout::Apart).await;
}

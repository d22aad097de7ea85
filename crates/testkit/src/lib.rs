//! For tests: a real nats-server ([`TestBroker`]) or a whole installation ([`TestInstallation`]) per test, conditions to
//! wait for ([`until`]), messages as any client would write them ([`Message`]) and agents that speak plain NATS
//! ([`Agent`]) or are hosted ([`with_hosted_agent`]), connections that wait for a slow machine ([`connect()`], [`patient`]), what a client
//! has asked for ([`round_trip`]), a place to listen at
//! ([`free_address`]), commands as users run them ([`command()`]), services whose clock is wrong
//! ([`binaries_with_clock`]), services that know the register ([`knows_agents`]), plain HTTP ([`http_get`], [`http_post`]), and what the broker
//! then holds ([`stored`], [`messages`], [`events`], [`dead_letters`], [`settled`], [`audit()`]).
//! [`Mutants`] are messages that are almost right, and [`Random`] numbers are the same for the same seed.
//! Everything ends when it is dropped.

mod agent;
mod audit;
mod broker;
mod clock;
mod command;
mod connect;
mod free_port;
mod hosted;
mod http;
mod installation;
mod message;
mod mutants;
mod programs;
mod random;
mod read;
mod register;
mod round_trip;
mod stored;
mod until;

pub use agent::{Agent, ReceivedMessage, agrees, keeps_position};
pub use audit::{audit, now};
pub use broker::TestBroker;
pub use clock::binaries_with_clock;
pub use command::{COMMAND_MAX, CommandOutput, command, concord_at, finish};
pub use concord_installation::{Installation, Instance, NatsServer, Plan, SERVICES, instances};
pub use connect::{connect, patient};
pub use free_port::free_address;
pub use hosted::{with_adapter_settings, with_hosted_agent};
pub use http::{http_get, http_post};
pub use installation::TestInstallation;
pub use message::{Message, check_unlike, unique};
pub use mutants::{Mutant, Mutants};
pub use programs::{binaries, concord, concord_program, nats_server, programs_of, python_tools};
pub use random::Random;
pub use read::{
    consumer_is_done, dead_letters, event_data, events, message_bodies, messages, original,
};
pub use register::knows_agents;
pub use round_trip::round_trip;
pub use stored::{Stored, layout, missing_consumers, settled, settled_but, stored, stored_from};
pub use until::{Missing, until, wait_for};

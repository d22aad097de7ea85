//! Three brokers keep each stream three times, and two of each service run, while brokers are killed, frozen and cut off from each
//! other, their disks become full, and services are killed and frozen: every case comes to the decision of an undisturbed run. The clock
//! of one of each two services is 30 seconds wrong. That of a broker cannot be made wrong: nats-server is linked statically and asks the
//! kernel, so no library stands between them, and a name space of times does not move the time of day.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use async_nats::jetstream;
use concord_domain::assurance::audit::{Checked, Violation};
use concord_runtime::clock;
use concord_testkit::{
    Plan, Random, SERVICES, TestInstallation, audit, binaries_with_clock, concord_at, events,
    settled, until, wait_for,
};
use concord_wire::Timestamp;
use concord_wire::subject::Service;

use crate::kill::agents::{Agents, publish};
use crate::kill::blows::{REPLICAS, doubled, freeze, last_event, thaw};
use crate::kill::brokers::{BROKERS, Brokers};
use crate::kill::cases::{self, AGENTS, opening, undisturbed, wait_for_decisions};

/// Cases of the gate; `CONCORD_CLUSTER_CASES` says another number.
const CASES: usize = 40;
/// Each kind of blow falls so often on the brokers and on each service, and once more for each hundred cases.
const ROUNDS: usize = 2;
const PATIENCE: Duration = Duration::from_secs(180);
/// So many events must be stored while something is frozen or cut off, or this time pass: a stream whose leader is away may have to wait for
/// an election.
const EVENTS_MEANWHILE: u64 = 24;
const MEANWHILE_MAX: Duration = Duration::from_secs(15);
/// What was stored so long before a disk was filled is on it.
const FILLS_MAX_MS: i64 = 10_000;

#[derive(Debug, Clone, Copy)]
enum Blow {
    KillBroker(usize),
    FreezeBroker(usize),
    CutOffBroker(usize),
    FillDisk(usize),
    KillService(Service, usize),
    FreezeService(Service, usize),
}

fn number_of_cases() -> usize {
    let given = std::env::var("CONCORD_CLUSTER_CASES");
    given.map_or(CASES, |number| number.parse().expect("a number of cases"))
}

/// How long so many cases may take on a machine that does other things, too.
fn patience(cases: usize) -> Duration {
    PATIENCE + Duration::from_secs(cases as u64)
}

/// Blows for a run of so many cases, in any order.
fn plan(random: &mut Random, cases: usize, disks: bool) -> Vec<Blow> {
    let mut blows = Vec::new();
    for round in 0..ROUNDS + cases / 100 {
        let mut broker = || random.below(BROKERS);
        blows.extend([
            Blow::KillBroker(broker()),
            Blow::FreezeBroker(broker()),
            Blow::CutOffBroker(broker()),
        ]);
        if disks {
            blows.push(Blow::FillDisk(broker()));
        }
        for service in SERVICES {
            blows.push(Blow::KillService(service, round % 2));
            blows.push(Blow::FreezeService(service, (round + 1) % 2));
        }
    }
    blows.sort_by_cached_key(|_| random.next());
    blows
}

/// Waits until more events are stored, or for as long as an election may take.
async fn meanwhile(jetstream: &jetstream::Context) {
    let Ok(before) = last_event(jetstream).await else {
        return;
    };
    let more = until("more events", MEANWHILE_MAX, async || {
        let last = last_event(jetstream).await?;
        if last >= before + EVENTS_MEANWHILE {
            Ok(())
        } else {
            Err(format!("event {last}"))
        }
    });
    if let Err(waited) = more.await {
        println!("         {waited}");
    }
}

/// Two processes of each service; the clocks of the second ones are so wrong, where that can be done.
async fn start_services(brokers: &Brokers, ahead_s: i32) -> [TestInstallation; REPLICAS] {
    let start_one = |binaries: Option<PathBuf>| {
        let url = brokers.url();
        TestInstallation::start_with(|before: Plan| {
            let mut plan = doubled(before).with_setting("storage.replicas=3");
            plan.server_url = Some(url);
            plan.replicas.values_mut().for_each(|number| *number = 1);
            plan.binaries = binaries.or(plan.binaries);
            plan
        })
    };
    let first = start_one(None).await;
    let binaries = binaries_with_clock(first.directory(), ahead_s);
    let second = start_one(binaries).await;
    [first, second]
}

/// Strikes, and returns when what was struck works again.
async fn strike(
    pairs: &[TestInstallation; REPLICAS],
    brokers: &Brokers,
    jetstream: &jetstream::Context,
    blow: Blow,
) {
    match blow {
        Blow::KillBroker(broker) => {
            brokers.kill(broker);
            meanwhile(jetstream).await;
            brokers.start_again(broker).await;
        }
        Blow::FreezeBroker(broker) => {
            brokers.freeze(broker);
            meanwhile(jetstream).await;
            brokers.thaw(broker);
        }
        Blow::CutOffBroker(broker) => {
            brokers.cut_off(broker);
            meanwhile(jetstream).await;
            brokers.mend(broker);
        }
        Blow::FillDisk(broker) => {
            let before = clock::now();
            brokers.fill_disk(broker).await;
            meanwhile(jetstream).await;
            brokers.make_room(broker).await;
            redeliver(brokers, before).await;
        }
        Blow::KillService(service, replica) => {
            let killed = pairs[replica].kill(service, 0);
            killed.expect("a process of the plan");
            let launched = pairs[replica].launch(service, 0);
            launched.expect("it starts again");
        }
        Blow::FreezeService(service, replica) => {
            freeze(&pairs[replica], service, 0);
            meanwhile(jetstream).await;
            thaw(&pairs[replica], service, 0);
        }
    }
}

/// Has everything handed out again that was stored since a little before then, as docs/operating.md tells who has made room on a full disk:
/// the broker may have passed it over (record 110).
async fn redeliver(brokers: &Brokers, filled: Timestamp) {
    let since = Timestamp::from_unix_millis(filled.unix_millis() - FILLS_MAX_MS).to_string();
    let redelivered = until("everything to be handed out again", PATIENCE, async || {
        let done = concord_at(&brokers.url(), &["redeliver", "--since", &since]).await;
        (done.code == 0).then_some(()).ok_or(done.err + &done.out)
    });
    redelivered.await.unwrap_or_else(|error| panic!("{error}"));
}

/// Opens these cases; while no broker can store it, a request is sent again.
async fn open(jetstream: &jetstream::Context, cases: std::ops::Range<usize>) {
    for number in cases {
        until("the request is stored", PATIENCE, async || {
            let stored = publish(jetstream, &opening(number)).await;
            stored.map_err(|error| error.to_string())
        })
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    }
}

/// Prints what is stored of an aggregate, which is what a violation can be understood from.
async fn explain(client: &async_nats::Client, aggregate: &str) {
    let stored = events(client, &format!("{}.>", aggregate.replace('/', "."))).await;
    for event in stored.unwrap_or_default() {
        let (id, body) = (event.header("Nats-Msg-Id"), event.json());
        println!("{} {} {id} {body}", event.sequence, event.subject);
    }
}

/// How many events stand in an aggregate from the first on that does not name the one before it, by aggregate: nats-server stores an
/// event beside its lock while the disk of the stream's leader is full (record 112).
pub(crate) async fn beside_the_lock(client: &async_nats::Client) -> BTreeMap<String, u64> {
    let stored = wait_for("the events", PATIENCE, async || events(client, ">").await).await;
    let (mut last, mut beside) = (BTreeMap::new(), BTreeMap::new());
    for event in &stored {
        let named: Vec<&str> = event.subject.split('.').skip(3).take(2).collect();
        let aggregate = named.join("/");
        let names = event.json()["earlier"]
            .as_array()
            .and_then(|earlier| earlier.last()?.as_u64());
        let before = last.insert(aggregate.clone(), event.sequence);
        if before != names || beside.contains_key(&aggregate) {
            *beside.entry(aggregate).or_default() += 1;
        }
    }
    beside
}

/// Every invariant holds; but for what a broker with a full disk has stored beside the lock of an aggregate, which `check` reports and
/// nobody can mend.
async fn check(client: &async_nats::Client, brokers: &Brokers) {
    // A broker that has come back may still be electing a leader of a stream.
    let report = wait_for("the streams to be read", PATIENCE, async || {
        audit(client).await
    })
    .await;
    if report.holds() {
        return;
    }
    let violations: Vec<_> = report.violations().collect();
    for (_, violation) in &violations {
        explain(client, &violation.place).await;
    }
    println!("{}", brokers.complaints());
    let beside = beside_the_lock(client).await;
    let is_known = |(checked, violation): &(&Checked, &Violation)| {
        checked.name == "replay"
            && beside.contains_key(&violation.place)
            && checked.violations <= beside.values().sum()
    };
    let known = brokers.found_full() > 0 && violations.iter().all(is_known);
    assert!(known, "{violations:#?}; beside the lock: {beside:?}");
    println!("stored beside the lock, by a broker with a full disk: {beside:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn three_brokers_lose_nothing_when_each_fails_in_turn() {
    if std::env::var_os("CONCORD_QUICK").is_some() {
        return println!("left out: CONCORD_QUICK is set");
    }
    let mut random = Random::seeded();
    let cases = number_of_cases();
    let expected = undisturbed(cases).await.of_first(cases);
    let brokers = Brokers::start().await;
    let ahead_s = *random.pick(&[-30, 30]);
    let pairs = start_services(&brokers, ahead_s).await;
    pairs[0].free_openers().await;
    let client = pairs[0].client().clone();
    let jetstream = jetstream::new(client.clone());
    let _agents = Agents::start(&client, &AGENTS[..4], cases::answers);
    let begun = Instant::now();
    let blows = plan(&mut random, cases, brokers.have_disks());
    let mut opened = 0;
    for (done, blow) in blows.iter().enumerate() {
        // Work is under way when each blow falls.
        let more = (cases * (done + 1)).div_ceil(blows.len());
        open(&jetstream, opened..more).await;
        opened = more;
        println!(
            "{:6.2} s: {opened} cases, {blow:?}",
            begun.elapsed().as_secs_f64()
        );
        strike(&pairs, &brokers, &jetstream, *blow).await;
    }
    let found = wait_for_decisions(&client, cases, patience(cases)).await;
    settled(&client, patience(cases))
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    println!("{:6.2} s: all is done", begun.elapsed().as_secs_f64());
    assert_eq!(expected, found);
    check(&client, &brokers).await;
    assert!(!brokers.have_disks() || brokers.found_full() > 0);
    for installation in &pairs {
        let exited = installation.exited();
        assert!(exited.is_empty(), "{exited:?}");
    }
}

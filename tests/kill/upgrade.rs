//! A rolling upgrade, back, and up again: services of the version before and of this one work side by side on the same streams.
//!
//! `CONCORD_BINARIES_BEFORE` names the folder with the programs of the version before; without it this is left out.
//! `CONCORD_UPGRADE_CASES` is the number of cases, 500 when it is not set. `scripts/test-upgrade` builds the programs and runs this.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use async_nats::jetstream;
use concord_installation::binary_name;
use concord_testkit::{
    SERVICES, TestInstallation, binaries, missing_consumers, settled, settled_but,
};
use concord_wire::subject::Service;
use serde_json::Value;

use crate::kill::agents::{Agents, store};
use crate::kill::blows::{REPLICAS, doubled};
use crate::kill::cases::{self, AGENTS, opening, undisturbed, wait_for_decisions};
use crate::kill::storm::check;

/// So often a process is replaced on the way up and back: each of two of five services.
const REPLACED: usize = SERVICES.len() * REPLICAS * 2;
const PATIENCE: Duration = Duration::from_secs(600);

/// A folder in which each service's program is a link: to that of the version before, or to this one's.
struct Programs {
    folder: tempfile::TempDir,
    before: PathBuf,
    now: PathBuf,
}

impl Programs {
    fn of_before(before: PathBuf) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (before, now) = (before.canonicalize().expect("it is there"), binaries());
        let programs = Self {
            folder,
            before,
            now,
        };
        for service in SERVICES {
            programs.link(service, &programs.before);
        }
        programs
    }

    /// From now on the service starts from the program in this folder.
    fn link(&self, service: Service, folder: &Path) {
        let name = binary_name(service);
        let (link, next) = (
            self.folder.path().join(&name),
            self.folder.path().join("next"),
        );
        std::os::unix::fs::symlink(folder.join(name), &next).expect("it can be linked");
        std::fs::rename(next, link).expect("it can be replaced");
    }
}

/// A running installation, and the cases that are opened in it meanwhile.
struct Rolling {
    installation: TestInstallation,
    jetstream: jetstream::Context,
    /// How many cases are opened before each process is replaced.
    each: usize,
    opened: usize,
    begun: Instant,
}

impl Rolling {
    /// Puts another version in the place of each service, one process after the other, as a rolling update does. Before each, further
    /// cases are opened.
    async fn roll(&mut self, programs: &Programs, to: &Path) {
        let installation = &self.installation;
        for service in SERVICES {
            programs.link(service, to);
            for replica in 0..REPLICAS {
                open(&self.jetstream, self.opened..self.opened + self.each).await;
                self.opened += self.each;
                let ended = installation.terminate(service, replica).await;
                assert!(ended.expect("it can be asked"), "{service} does not end");
                let started = installation.restart(service, replica).await;
                started.unwrap_or_else(|error| panic!("{service}: {error}"));
            }
            let seconds = self.begun.elapsed().as_secs_f64();
            println!("{seconds:6.2} s: {service} is of {}", to.display());
        }
    }
}

async fn open(jetstream: &jetstream::Context, numbers: Range<usize>) {
    for number in numbers {
        store(jetstream, &opening(number)).await;
    }
}

/// The decisions of all cases, while each service is replaced by this version, and then by the one before. The processes of the version
/// before are to finish everything; at last this version comes again, and finds nothing that it cannot go on with.
async fn rolled(before: PathBuf, each: usize) -> Vec<(String, Value)> {
    let programs = Programs::of_before(before);
    let installation = TestInstallation::start_with(|plan| {
        let mut plan = doubled(plan);
        plan.binaries = Some(programs.folder.path().to_owned());
        plan
    })
    .await;
    installation.free_openers().await;
    let client = installation.client().clone();
    let _agents = Agents::start(&client, &AGENTS[..4], cases::answers);
    // What waits there waits until this version is back: the one before does not read it.
    let unread = missing_consumers(&client)
        .await
        .expect("the broker answers");
    println!("read by this version only: {unread:?}");
    let mut rolling = Rolling {
        jetstream: jetstream::new(client.clone()),
        each,
        opened: 0,
        begun: Instant::now(),
        installation,
    };
    rolling.roll(&programs, &programs.now).await;
    rolling.roll(&programs, &programs.before).await;
    let decided = wait_for_decisions(&client, rolling.opened, PATIENCE).await;
    let all_done = settled_but(&client, &unread, PATIENCE).await;
    all_done.unwrap_or_else(|error| panic!("{error}"));
    check(&rolling.installation).await;
    rolling.each = 0;
    rolling.roll(&programs, &programs.now).await;
    let all_done = settled(&client, PATIENCE).await;
    all_done.unwrap_or_else(|error| panic!("{error}"));
    check(&rolling.installation).await;
    decided
}

#[tokio::test(flavor = "multi_thread")]
async fn two_versions_side_by_side_decide_alike_on_the_way_up_and_back() {
    let Some(before) = std::env::var_os("CONCORD_BINARIES_BEFORE") else {
        return println!("left out: CONCORD_BINARIES_BEFORE is not set");
    };
    let cases = std::env::var("CONCORD_UPGRADE_CASES").map_or(500, |cases| {
        cases.parse().expect("CONCORD_UPGRADE_CASES is a number")
    });
    let each = cases / REPLACED;
    // The decisions of all cases with this version alone.
    let cases = each * REPLACED;
    let expected = undisturbed(cases).await.of_first(cases);
    let found = rolled(PathBuf::from(before), each).await;
    assert_eq!(expected.len(), found.len());
    for (expected, found) in expected.iter().zip(&found) {
        assert_eq!(expected, found);
    }
}

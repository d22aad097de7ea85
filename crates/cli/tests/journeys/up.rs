//! `concord up`: ready when it says so, whole while it runs, gone when it ends.

use std::path::Path;
use std::process::Stdio;

use concord_testkit::{binaries, nats_server, until};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::Command;

use crate::command::{Session, concord, doctor_until, run};
use concord_testkit::COMMAND_MAX;

fn up(arguments: &[&str]) -> Command {
    let mut command = concord();
    command
        .env("CONCORD_NATS_SERVER", nats_server())
        .env("CONCORD_BINARIES", binaries());
    command.args(["up", "--port", "0"]).args(arguments);
    command
}

fn is_alive(pid: u64) -> bool {
    // A process that nobody has waited for yet is a zombie, and as good as gone.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ")
        .next()
        .is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

async fn first_line(output: impl AsyncReadExt + Unpin) -> String {
    let mut line = String::new();
    tokio::time::timeout(COMMAND_MAX, BufReader::new(output).read_line(&mut line))
        .await
        .expect("it is ready")
        .unwrap();
    line
}

async fn signal(name: &str, pid: u64) {
    let status = Command::new("kill")
        .args([name, &pid.to_string()])
        .status()
        .await
        .unwrap();
    assert!(status.success());
}

#[tokio::test]
async fn an_installation_comes_up_whole_heals_and_goes_down() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let arguments = [
        "--json",
        "--replicas",
        "coordinator=2",
        "--directory",
        data.to_str().unwrap(),
    ];
    let mut child = up(&arguments).spawn().unwrap();
    let ready: Value =
        serde_json::from_str(&first_line(child.stdout.take().unwrap()).await).unwrap();
    let url = ready["server"].as_str().unwrap();
    let processes = ready["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 6, "{ready}");
    doctor_until(&["--server", url], |said| said.code == 0).await;
    let second = concord_testkit::finish(&mut up(&["--directory", data.to_str().unwrap()])).await;
    assert!(
        second.code == 1 && second.err.contains("another installation runs in"),
        "{second:?}"
    );
    assert!(
        run(&["agents", "--server", url])
            .await
            .good()
            .contains("hosts no agents")
    );

    heals(&Session::new(url), processes).await;

    signal("-TERM", child.id().unwrap().into()).await;
    let status = tokio::time::timeout(COMMAND_MAX, child.wait())
        .await
        .expect("it ends")
        .unwrap();
    let mut err = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .await
        .unwrap();
    assert!(
        status.success() && err.contains("starting it again") && !err.contains("were killed"),
        "{err}"
    );
    for process in processes {
        assert!(!is_alive(process["pid"].as_u64().unwrap()), "{process}");
    }
    assert!(
        Path::new(&data).join("logs/coordinator-1.log").is_file(),
        "a directory that was named is kept"
    );
    run(&["doctor", "--server", url]).await.refused(69);
}

#[tokio::test]
async fn a_secure_installation_lets_in_who_has_credentials() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let arguments = ["--secure", "--json", "--directory", data.to_str().unwrap()];
    // The second time it finds what the first has made.
    for _ in 0..2 {
        let mut child = up(&arguments).spawn().unwrap();
        let ready: Value =
            serde_json::from_str(&first_line(child.stdout.take().unwrap()).await).unwrap();
        let text = |key: &str| ready[key].as_str().unwrap();
        doctor_until(&["--config", text("config")], |said| said.code == 0).await;
        run(&["doctor", "--server", text("server")])
            .await
            .refused(69);
        check_by_flags(&ready).await;
        let listed = run(&["credentials", "list", text("credentials"), "--json"]).await;
        let listed: Value = serde_json::from_str(&listed.good()).unwrap();
        assert_eq!(listed.as_array().map(Vec::len), Some(6), "{listed:#}");
        signal("-TERM", child.id().unwrap().into()).await;
        tokio::time::timeout(COMMAND_MAX, child.wait())
            .await
            .expect("it ends")
            .unwrap();
    }
}

/// Who names every file by a flag is let in, and whoever names too little is told what is missing.
async fn check_by_flags(ready: &Value) {
    let credentials = std::path::Path::new(ready["credentials"].as_str().unwrap());
    let credentials = credentials.join("creds/CONCORD/operator-local.creds");
    let tls = |key: &str| ready["tls"][key].as_str().unwrap();
    let mut arguments = vec!["doctor", "--server", ready["server"].as_str().unwrap()];
    arguments.extend(["--credentials", credentials.to_str().unwrap()]);
    let error = run(&arguments).await.refused(69);
    assert!(error.contains("--tls-ca FILE"), "{error}");
    arguments.extend(["--tls-ca", tls("ca")]);
    let error = run(&arguments).await.refused(69);
    assert!(error.contains("--tls-certificate FILE"), "{error}");
    arguments.extend([
        "--tls-certificate",
        tls("certificate"),
        "--tls-key",
        tls("key"),
    ]);
    doctor_until(&arguments[1..], |said| said.code == 0).await;
}

/// A service that is killed is started again.
async fn heals(session: &Session, processes: &[Value]) {
    let is_facilitator = |process: &&Value| process["service"] == "debate-facilitator";
    let facilitator = processes.iter().find(is_facilitator).unwrap();
    let pid = facilitator["pid"].as_u64().unwrap();
    signal("-KILL", pid).await;
    let started = "the killed service to be started again";
    let whole = until(started, COMMAND_MAX, async || {
        let doctor = session.run("doctor").await;
        if doctor.code == 0 && !doctor.out.contains(&pid.to_string()) {
            Ok(())
        } else {
            Err(doctor.out)
        }
    });
    whole.await.unwrap();
}

#[tokio::test]
async fn nothing_survives_a_parent_that_is_killed() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let mut child = up(&["--json"]).stderr(Stdio::null()).spawn().unwrap();
    let ready: Value =
        serde_json::from_str(&first_line(child.stdout.take().unwrap()).await).unwrap();
    child.kill().await.unwrap();
    let gone = until("the services to be gone", COMMAND_MAX, async || {
        let pids = ready["processes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|process| process["pid"].as_u64().unwrap());
        let alive: Vec<u64> = pids.filter(|pid| is_alive(*pid)).collect();
        if alive.is_empty() {
            Ok(())
        } else {
            Err(format!("{alive:?} run"))
        }
    });
    gone.await.unwrap();
    let url = ready["server"].as_str().unwrap();
    let gone = until("the broker to be gone", COMMAND_MAX, async || {
        match run(&["doctor", "--server", url]).await.code {
            69 => Ok(()),
            code => Err(format!("doctor ends with {code}")),
        }
    });
    gone.await.unwrap();
    // The temporary directory is all that is left; nobody was there to remove it.
    std::fs::remove_dir_all(ready["directory"].as_str().unwrap()).unwrap();
}

#[tokio::test]
async fn what_does_not_start_says_why() {
    let mut command = up(&["--set", "work.drain=1"]);
    let said = concord_testkit::finish(&mut command).await;
    assert!(
        said.code == 64 && said.err.contains("did you mean \"work.drain_ms\"?"),
        "{said:?}"
    );
    let empty = tempfile::tempdir().unwrap();
    let mut command = up(&[]);
    command.env("CONCORD_BINARIES", empty.path());
    let said = concord_testkit::finish(&mut command).await;
    assert!(
        said.code == 1 && said.err.contains("cargo build --package concord-"),
        "{said:?}"
    );
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let error = run(&["up", "--port", &port]).await.refused(1);
    assert!(error.contains("is taken"), "{error}");
    let mut command = up(&["--secure", "--set", "storage.prefix=foo"]);
    let error = concord_testkit::finish(&mut command).await.refused(2);
    assert!(error.contains("--prefix"), "{error}");
}

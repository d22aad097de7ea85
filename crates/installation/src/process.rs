//! One child process: started with its output in a file, stopped, killed, and never left behind.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError, mpsc};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::Error;

/// The time between two looks at an ending process.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// At most so many bytes, and so many lines, of a log are shown.
const TAIL_BYTES: u64 = 8_192;
const TAIL_LINES: usize = 15;

/// A program, its arguments and its environment.
#[derive(Debug, Clone)]
pub struct Program {
    /// The name of the program, for people.
    pub name: String,
    /// The path of the program.
    pub path: PathBuf,
    /// The arguments of the program.
    pub arguments: Vec<String>,
    /// Environment variables, besides those of this process.
    pub environment: Vec<(String, String)>,
    /// The file to which its output is appended.
    pub log: PathBuf,
    /// The signal it gets when this process is killed: `KILL` or `TERM`.
    pub orphaned: &'static str,
}

/// A program that may be running. It is killed when this is dropped.
#[derive(Debug)]
pub struct Process {
    /// The program.
    pub program: Program,
    child: Mutex<Option<Child>>,
}

impl Process {
    /// A program that has not been started.
    pub fn new(program: Program) -> Self {
        Self {
            program,
            child: Mutex::new(None),
        }
    }

    fn child<T>(&self, look: impl FnOnce(&mut Option<Child>) -> T) -> T {
        look(&mut self.child.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Starts the program, unless it is running.
    pub fn start(&self) -> Result<(), Error> {
        if self.is_running() {
            return Ok(());
        }
        let Program {
            name, path, log, ..
        } = &self.program;
        if !path.is_file() {
            return Err(Error::NoProgram {
                name: name.clone(),
                path: path.clone(),
            });
        }
        let output = OpenOptions::new()
            .create(true)
            .append(true)
            .open(log)
            .map_err(|e| Error::file(log, e))?;
        let child = spawn(self.command(&output).map_err(|e| Error::file(log, e))?);
        let child = child.map_err(|source| Error::Start {
            name: name.clone(),
            source,
        })?;
        self.child(|slot| *slot = Some(child));
        Ok(())
    }

    fn command(&self, output: &File) -> std::io::Result<Command> {
        let Program {
            path,
            arguments,
            environment,
            orphaned,
            ..
        } = &self.program;
        let mut command = match death_signal_setter() {
            Some(setter) => {
                let mut command = Command::new(setter);
                command.args(["--pdeathsig", orphaned, "--"]).arg(path);
                command
            }
            None => Command::new(path),
        };
        command
            .args(arguments)
            .envs(environment.iter().cloned())
            .stdin(Stdio::null());
        command
            .stdout(output.try_clone()?)
            .stderr(output.try_clone()?);
        // A Ctrl-C in the terminal is for the parent alone, which then ends its children in order.
        command.process_group(0);
        Ok(command)
    }

    /// Its process id, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child(|slot| alive(slot).map(Child::id))
    }

    /// True while it runs.
    pub fn is_running(&self) -> bool {
        self.pid().is_some()
    }

    /// The exit status; none before the start and while it runs.
    pub fn ended(&self) -> Option<ExitStatus> {
        self.child(|slot| {
            slot.as_mut()
                .and_then(|child| child.try_wait().ok().flatten())
        })
    }

    /// Sends SIGKILL, and waits until the process has ended.
    pub fn kill(&self) {
        self.child(|slot| {
            if let Some(mut child) = slot.take() {
                // It may be gone already, which is what is wanted.
                let _ = child.kill();
                let _ = child.wait();
            }
        });
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Stops it without its knowing (SIGSTOP). False when it does not run. A frozen process can still be killed.
    pub fn freeze(&self) -> bool {
        self.signal(Signal::STOP)
    }

    /// Lets a frozen process go on (SIGCONT). False when it does not run.
    pub fn thaw(&self) -> bool {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> bool {
        self.child(|slot| {
            let pid = alive(slot).and_then(|child| i32::try_from(child.id()).ok());
            let pid = pid.and_then(Pid::from_raw);
            pid.is_some_and(|pid| kill_process(pid, signal).is_ok())
        })
    }

    /// Waits until it has ended; kills it when that takes longer than `bound`. True when it ended by itself.
    pub async fn wait(&self, bound: Duration) -> bool {
        let begun = Instant::now();
        while self.is_running() {
            if begun.elapsed() > bound {
                self.kill();
                return false;
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
        self.child(Option::take);
        true
    }

    /// The last lines of its log, indented.
    pub fn tail(&self) -> String {
        tail(&self.program.log).unwrap_or_else(|error| format!("  (no log: {error})"))
    }
}

/// The child, while it runs: the id of one that has been waited for may be another's by now.
fn alive(slot: &mut Option<Child>) -> Option<&Child> {
    let running = matches!(slot.as_mut()?.try_wait(), Ok(None));
    slot.as_ref().filter(|_| running)
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn tail(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.iter().skip(lines.len().saturating_sub(TAIL_LINES));
    let last: Vec<String> = last.map(|line| format!("  {line}")).collect();
    Ok(if last.is_empty() {
        "  (the log is empty)".to_owned()
    } else {
        last.join("\n")
    })
}

/// The `setpriv` that can set a death signal, if this machine has one.
fn death_signal_setter() -> Option<&'static str> {
    static SETTER: OnceLock<Option<&'static str>> = OnceLock::new();
    *SETTER.get_or_init(|| {
        let mut probe = Command::new("setpriv");
        probe.args(["--pdeathsig", "KILL", "--", "true"]);
        probe
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        probe
            .status()
            .is_ok_and(|status| status.success())
            .then_some("setpriv")
    })
}

type Job = (Command, mpsc::Sender<std::io::Result<Child>>);

/// Starts a child from a thread that lives as long as this process: the death signal is sent when the *thread* that
/// started the child ends, which for a thread of a test or of a pool is too early.
fn spawn(command: Command) -> std::io::Result<Child> {
    static NURSERY: OnceLock<Option<mpsc::Sender<Job>>> = OnceLock::new();
    let nursery = NURSERY.get_or_init(|| {
        let (sender, jobs) = mpsc::channel::<Job>();
        let work = move || {
            for (mut command, answer) in jobs {
                // Who asked waits for the answer, so there is someone to take it.
                let _ = answer.send(command.spawn());
            }
        };
        std::thread::Builder::new()
            .name("nursery".into())
            .spawn(work)
            .ok()
            .map(|_| sender)
    });
    let gone = || std::io::Error::other("the thread that starts processes is gone");
    let (answer, child) = mpsc::channel();
    nursery
        .as_ref()
        .ok_or_else(gone)?
        .send((command, answer))
        .map_err(|_| gone())?;
    child.recv().map_err(|_| gone())?
}

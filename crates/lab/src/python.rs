//! The Python of this machine, with nats-py.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use concord_cli::shared::failure::Failure;

/// A Python with nats-py.
#[derive(Debug, Clone)]
pub(crate) struct Python {
    /// Its program.
    pub(crate) program: PathBuf,
    path: String,
}

impl Python {
    /// Finds python3, and nats-py in it or in `.tools` of the current folder, this program's, or one above. `needed_by`
    /// names who needs it.
    pub(crate) fn find(needed_by: &str) -> Result<Self, Failure> {
        let on_path = std::env::var_os("PATH").unwrap_or_default();
        let program = std::env::split_paths(&on_path)
            .map(|place| place.join("python3"))
            .find(|path| path.is_file());
        let program = program.ok_or_else(|| {
            Failure::unavailable(format!("{needed_by} needs python3, and there is none"))
        })?;
        let python = Self {
            program,
            path: path(),
        };
        let mut probe = Command::new(&python.program);
        probe
            .args(["-c", "import nats.js"])
            .envs(python.environment())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if probe.status().is_ok_and(|status| status.success()) {
            return Ok(python);
        }
        Err(Failure::unavailable(format!(
            "{needed_by} needs nats-py, and python3 has none; run scripts/python-tools, which installs it into .tools/"
        )))
    }

    /// The environment of its programs.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        vec![
            ("PYTHONPATH".into(), self.path.clone()),
            ("PYTHONDONTWRITEBYTECODE".into(), "1".into()),
            ("PYTHONUNBUFFERED".into(), "1".into()),
        ]
    }
}

fn path() -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let exe = std::env::current_exe().unwrap_or_default();
    let mut places: Vec<PathBuf> = std::env::var_os("PYTHONPATH")
        .iter()
        .flat_map(std::env::split_paths)
        .collect();
    places.extend(
        here.ancestors()
            .chain(exe.ancestors())
            .map(|above| above.join(".tools"))
            .filter(|tools| tools.is_dir()),
    );
    std::env::join_paths(places)
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

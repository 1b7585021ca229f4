//! The program `sluice` in a folder of its own.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

pub struct Program {
    folder: tempfile::TempDir,
    binary: PathBuf,
    /// Variables of its environment, besides our own.
    pub variables: Vec<(&'static str, String)>,
}

/// A `sluice run` in the background; killed when it is dropped.
pub struct Running {
    child: Child,
    pub log: PathBuf,
}

impl Program {
    pub fn new(config: &str) -> Self {
        let binary = std::env::var("SLUICE_PROGRAM").expect("these tests need the program: tests/stream/run.sh builds it");
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("sluice.toml"), config).unwrap();
        Self { folder, binary: binary.into(), variables: Vec::new() }
    }

    /// Changes the configuration.
    pub fn reconfigure(&self, from: &str, to: &str) {
        let path = self.folder.path().join("sluice.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{from}");
        std::fs::write(&path, text.replace(from, to)).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a command to its end; what it printed.
    pub fn ok(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "sluice {arguments:?}: {}\n{out}\n{err}", output.status);
        out.into_owned()
    }

    /// Reads the topics to their ends; the last numbers that it told.
    pub fn run_to_end(&self, arguments: &[&str]) -> Value {
        let log = self.ok(&[&["run", "--until", "end", "--report-every-s", "60"], arguments].concat());
        serde_json::from_str(log.lines().rfind(|line| line.starts_with('{')).unwrap()).unwrap()
    }

    /// Runs a command that must fail; its exit code and what it printed.
    pub fn fails(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = self.command(arguments).output().unwrap();
        assert!(!output.status.success(), "sluice {arguments:?} succeeded");
        (output.status.code(), format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)))
    }

    /// Starts a command.
    pub fn start(&self, arguments: &[&str], name: &str) -> Running {
        let log = self.folder.path().join(format!("{name}.log"));
        let file = File::options().create(true).append(true).open(&log).unwrap();
        let child = self.command(arguments).stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
        Running { child, log }
    }

    /// The rows of a table.
    pub fn rows(&self, table: &str) -> Vec<Value> {
        serde_json::from_str(&self.ok(&["table", "rows", table, "--limit", "0", "--json"])).unwrap()
    }
}

impl Running {
    /// SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM, and the end in order.
    pub fn stop(self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        self.end();
    }

    /// Its end by itself, with success.
    pub fn end(mut self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                assert!(status.success(), "{}", self.log());
                return;
            }
            assert!(Instant::now() < deadline, "it does not end: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether it still runs.
    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits for a text in its output.
    pub fn wait_for(&mut self, text: &str) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !self.log().contains(text) {
            assert!(self.is_alive() && Instant::now() < deadline, "no `{text}` in: {}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

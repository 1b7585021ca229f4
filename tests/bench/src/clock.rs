//! CPU time of this thread and memory of this process. Wall time says little on a machine that others use too.

use rustix::time::{ClockId, clock_gettime};

/// CPU time of this thread in nanoseconds.
#[must_use]
pub fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// The most memory that this process ever had, in MB; `None` where `/proc` does not tell.
#[must_use]
pub fn peak_rss_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kilobytes / 1024.0)
}

/// The CPU time of a path's stages, in the order in which they first came up.
#[derive(Debug, Default, Clone)]
pub struct Stages {
    /// Name and nanoseconds.
    pub times: Vec<(&'static str, u64)>,
    timing: Timing,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Timing {
    #[default]
    On,
    Off,
}

impl Stages {
    /// Stages that nobody asks for: valgrind cannot run the clock.
    #[must_use]
    pub const fn untimed() -> Self {
        Self { times: Vec::new(), timing: Timing::Off }
    }

    /// Runs `work` as part of the stage `name`.
    pub fn time<T>(&mut self, name: &'static str, work: impl FnOnce() -> T) -> T {
        if self.timing == Timing::Off {
            return work();
        }
        let start = cpu_ns();
        let result = work();
        self.add(name, cpu_ns() - start);
        result
    }

    fn add(&mut self, name: &'static str, spent: u64) {
        match self.times.iter_mut().find(|(known, _)| *known == name) {
            Some((_, time)) => *time += spent,
            None => self.times.push((name, spent)),
        }
    }
}

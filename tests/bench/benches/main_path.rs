//! Floor and Sluice over the same events, in turns, as a Markdown table.
//!
//! No divan or criterion: what counts is the ratio of two paths on a machine that others use too. So both take turns, CPU time of the
//! thread is counted and not wall time, and medians are compared. The first event of a process and its peak memory need a process of their
//! own: this program starts itself for them.
//!
//! Arguments: a word that the case's name must hold, such as `envelope` or `50`; `--rounds N`; `--profile sluice|floor KIND TABLES ROUNDS FILE`,
//! where the event is read from the file; `--event KIND TABLES FILE` writes it.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::process::Command;

use sluice_bench::clock::{cpu_ns, peak_rss_mb};
use sluice_bench::{EVENT_BYTES, Kind, Made, Path, Stages, floor, lambda_event};

const TABLES: [usize; 2] = [1, 50];
const ROUNDS: usize = 25;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [flag, path, kind, tables, rounds, event] = arguments.as_slice()
        && flag == "--profile"
    {
        return profile(path, kind_named(kind), (tables.parse().unwrap(), rounds.parse().unwrap(), event));
    }
    if let [flag, kind, tables, file] = arguments.as_slice()
        && flag == "--event"
    {
        return std::fs::write(file, lambda_event(kind_named(kind), tables.parse().unwrap(), EVENT_BYTES)).unwrap();
    }
    let rounds = arguments.iter().position(|argument| argument == "--rounds").and_then(|at| arguments.get(at + 1)?.parse().ok());
    let filter = arguments.first().filter(|argument| !argument.starts_with("--")).cloned().unwrap_or_default();
    let mut detail = String::new();
    println!(
        "| event | records | floor ms | sluice ms | ratio | first event, fresh process: floor, sluice ms | peak RSS: floor, sluice MB |"
    );
    println!("|---|---|---|---|---|---|---|");
    for kind in Kind::ALL {
        for tables in TABLES {
            if format!("{} {tables}", kind.name()).contains(&filter) {
                detail.push_str(&compare(kind, tables, rounds.unwrap_or(ROUNDS)));
            }
        }
    }
    println!("\nStages of Sluice, ms (share):\n{detail}");
}

fn kind_named(name: &str) -> Kind {
    Kind::ALL.into_iter().find(|kind| kind.name() == name).unwrap()
}

fn median(mut values: Vec<u64>) -> f64 {
    values.sort_unstable();
    values[values.len() / 2] as f64 / 1e6
}

/// Prints the case's line and gives back its stages.
fn compare(kind: Kind, tables: usize, rounds: usize) -> String {
    let event = lambda_event(kind, tables, EVENT_BYTES);
    let path = Path::new(kind, tables);
    let (mut floor_times, mut sluice_times) = (Vec::new(), Vec::new());
    let mut by_stage: BTreeMap<(usize, &str), Vec<u64>> = BTreeMap::new();
    let mut made = Made::default();
    for round in 0..=rounds {
        let start = cpu_ns();
        let floor_files = floor::run(&event, kind, &mut Stages::default()).unwrap();
        let middle = cpu_ns();
        let mut stages = Stages::default();
        made = path.run(&event, &mut stages);
        let end: u64 = stages.times.iter().map(|(_, spent)| spent).sum();
        assert_eq!((made.files, made.refused), (floor_files.len(), 0), "both write the same files");
        if round > 0 {
            floor_times.push(middle - start);
            sluice_times.push(end);
            for (place, (stage, spent)) in stages.times.into_iter().enumerate() {
                by_stage.entry((place, stage)).or_default().push(spent);
            }
        }
    }
    let (floor_ms, sluice_ms) = (median(floor_times), median(sluice_times));
    let file = std::env::temp_dir().join(format!("sluice-bench-{}.json", std::process::id()));
    std::fs::write(&file, &event).unwrap();
    let (floor_fresh, sluice_fresh) = (fresh("floor", (kind, tables), &file), fresh("sluice", (kind, tables), &file));
    std::fs::remove_file(&file).unwrap();
    println!(
        "| {} {tables} | {} | {floor_ms:.1} | {sluice_ms:.1} | {:.2} | {}, {} | {}, {} |",
        kind.name(),
        made.applied,
        sluice_ms / floor_ms,
        floor_fresh.0,
        sluice_fresh.0,
        floor_fresh.1,
        sluice_fresh.1
    );
    let shares = by_stage.into_iter().map(|((_, stage), times)| {
        let ms = median(times);
        format!("{stage} {ms:.2} ({:.0} %)", ms / sluice_ms * 100.0)
    });
    let shares: Vec<String> = shares.collect();
    format!(
        "- {} {tables}: {}; {} files, {} bytes, {} rows, {} deletes\n",
        kind.name(),
        shares.join(", "),
        made.files,
        made.bytes,
        made.rows,
        made.deletes
    )
}

/// The CPU time of the first event in a process, and its peak memory, each the median of some processes.
fn fresh(path: &str, (kind, tables): (Kind, usize), event: &std::path::Path) -> (String, String) {
    const PROCESSES: usize = 5;
    let mut seen: Vec<(f64, f64)> = (0..PROCESSES)
        .map(|_| {
            let program = std::env::current_exe().unwrap();
            let output =
                Command::new(program).args(["--profile", path, kind.name(), &tables.to_string(), "1"]).arg(event).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let mut numbers = text.split_whitespace().map(|word| word.parse::<f64>().unwrap());
            (numbers.next().unwrap(), numbers.next().unwrap())
        })
        .collect();
    seen.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (ms, mb) = seen[PROCESSES / 2];
    (format!("{ms:.1}"), format!("{mb:.0}"))
}

/// Takes one event `rounds` times through one path: for profilers, and for the first event of a process. Prints the CPU time of the last
/// event in ms and the peak memory in MB, the event itself included.
fn profile(path: &str, kind: Kind, (tables, rounds, event): (usize, usize, &str)) {
    let event = std::fs::read(event).unwrap();
    let sluice = (path == "sluice").then(|| Path::new(kind, tables));
    let mut spent = 0;
    let mut stages = Stages::default();
    for _ in 0..rounds {
        stages = Stages::default();
        let start = cpu_ns();
        match &sluice {
            Some(sluice) => drop(sluice.run(&event, &mut stages)),
            None => drop(floor::run(&event, kind, &mut stages).unwrap()),
        }
        spent = cpu_ns() - start;
    }
    for (stage, spent) in stages.times {
        eprintln!("{stage} {:.2}", spent as f64 / 1e6);
    }
    println!("{} {}", spent as f64 / 1e6, peak_rss_mb().unwrap_or(0.0));
}

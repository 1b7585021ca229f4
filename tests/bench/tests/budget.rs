//! The main path must not become slower unnoticed.
//!
//! Times do not repeat on shared machines, counts do. Two are held here, on a small event of each kind: how often the path allocates and
//! how much, which needs nothing but this test; and how many instructions it executes as a multiple of the floor's, which needs valgrind.
//! Both are taken in the profile that the tests are built in; the real figures are those of `make bench`.
//!
//! When a change makes the path cheaper, lower the budget with it: for allocations the test asks for that, too.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::process::Command;

use sluice_bench::{Kind, Path, Stages, floor, lambda_event};

/// Large enough that what is done once an event does not hide what is done once a record.
const EVENT_BYTES: usize = 256 * 1024;
/// By how much a budget may be exceeded, and fallen short of, in percent.
const TOLERANCE: u64 = 10;

struct Budget {
    kind: Kind,
    tables: usize,
    allocations: u64,
    kilobytes: u64,
}

const BUDGETS: [Budget; 4] = [
    Budget { kind: Kind::Envelope, tables: 1, allocations: 2665, kilobytes: 3691 },
    Budget { kind: Kind::Envelope, tables: 20, allocations: 41979, kilobytes: 30773 },
    Budget { kind: Kind::Debezium, tables: 1, allocations: 2567, kilobytes: 3189 },
    Budget { kind: Kind::DebeziumWithSchema, tables: 1, allocations: 2369, kilobytes: 2275 },
];

/// What is wrong with `found`, if it is not the budget give or take the tolerance.
fn objection(what: &str, found: u64, budget: u64) -> Option<String> {
    let (low, high) = (budget * (100 - TOLERANCE) / 100, budget * (100 + TOLERANCE) / 100);
    let verdict = if found > high { "more than" } else { "less than" };
    let advice = if found > high { "find out why" } else { "lower the budget" };
    (found < low || found > high).then(|| format!("{what}: {found} is {TOLERANCE} % {verdict} the budget of {budget}; {advice}"))
}

#[test]
fn allocations_stay_within_their_budget() {
    let mut objections = Vec::new();
    for budget in BUDGETS {
        let event = lambda_event(budget.kind, budget.tables, EVENT_BYTES);
        let path = Path::new(budget.kind, budget.tables);
        // What is made once a process is not the path's.
        path.run(&event, &mut Stages::default());
        let counted = allocation_counter::measure(|| {
            path.run(&event, &mut Stages::default());
        });
        let name = format!("{} {}", budget.kind.name(), budget.tables);
        objections.extend(objection(&format!("{name}, allocations"), counted.count_total, budget.allocations));
        objections.extend(objection(&format!("{name}, kilobytes"), counted.bytes_total / 1024, budget.kilobytes));
    }
    assert!(objections.is_empty(), "{}", objections.join("\n"));
}

/// Instructions of Sluice for a hundred of the floor's, envelope, one table.
const INSTRUCTIONS_PERCENT: u64 = 128;

#[test]
fn instructions_stay_within_their_budget() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        let in_ci = std::env::var("CI").is_ok_and(|value| value == "true");
        assert!(!in_ci, "CI has to have valgrind (apt-get install valgrind)");
        eprintln!("SKIPPED: valgrind is not installed, so instructions are not counted; the allocations still are");
        return;
    }
    let (sluice, floor) = (instructions("*sluice_bench::path::Path::run"), instructions("*sluice_bench::floor::run"));
    let found = sluice * 100 / floor;
    println!("instructions: {sluice}, {found} % of the floor's");
    // Only upwards: what libraries choose for the processor that they run on may make the count smaller elsewhere.
    let most = INSTRUCTIONS_PERCENT * (100 + TOLERANCE) / 100;
    assert!(
        found <= most,
        "instructions: {found} % of the floor's, the budget is {INSTRUCTIONS_PERCENT} % and {TOLERANCE} % of it; find out why"
    );
}

/// The instructions of one function and all that it calls, in a process of its own that runs [`both_paths`].
fn instructions(function: &str) -> u64 {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no"])
        .arg(format!("--toggle-collect={function}"))
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "both_paths", "--ignored", "--test-threads=1"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    let collected = text.lines().find_map(|line| line.split_once("Collected :")).map(|(_, count)| count.trim().parse());
    collected.unwrap_or_else(|| panic!("callgrind counted nothing: {text}")).unwrap()
}

#[test]
#[ignore = "run by instructions_stay_within_their_budget under callgrind"]
fn both_paths() {
    let event = lambda_event(Kind::Envelope, 1, EVENT_BYTES);
    Path::new(Kind::Envelope, 1).run(&event, &mut Stages::untimed());
    floor::run(&event, Kind::Envelope, &mut Stages::untimed()).unwrap();
}

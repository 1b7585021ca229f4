//! Seeded simulation of the ingest function: real invocations over a simulated catalog, storage and clock.
//!
//! `world` holds files, pointers, clock and waiting calls; `storage` and `pointers` put them under iceberg's `FileIO` and under the real pointer
//! catalog; `run` is the scheduler, `broker` Kafka, `foreign` other programs, `oracle` the invariants, with a `reader` of its own.
//!
//! Three things no ledger can tell, so the model leaves them out: a rollback to a foreign snapshot whose ancestors are expired, expiring the
//! ancestors of a rolled back table before Sluice has committed again while a foreign snapshot is on top, and two invocations that hold one record
//! while its table gains a column (it may become a row and a dead letter).
//!
//! `SIM_SEEDS=n` runs more seeds, `SIM_FIRST=n` begins with another one. A failing seed is printed as environment variables that run it again; with `SIM_TELL=1` it
//! says what happens.
#![allow(clippy::unwrap_used, clippy::panic, unreachable_pub)]

mod broker;
mod foreign;
mod oracle;
mod plan;
mod pointers;
mod reader;
mod records;
mod rng;
mod run;
mod shrink;
mod storage;
mod trouble;
mod world;

use plan::Plan;
use run::Account;
use shrink::{shrink, try_run};
use sluice_model::mutants::Mutant;

const SEEDS: u64 = 2_000;

fn seeds() -> u64 {
    std::env::var("SIM_SEEDS").map_or(SEEDS, |text| text.parse().unwrap())
}

#[test]
fn seeds_keep_every_invariant() {
    let first: u64 = std::env::var("SIM_FIRST").map_or(0, |text| text.parse().unwrap());
    let plans: Vec<Plan> = match Plan::from_environment() {
        Some(plan) => vec![plan],
        None => (first..first + seeds()).map(Plan::of).collect(),
    };
    let mut all = Account::default();
    for plan in &plans {
        match try_run(plan) {
            Ok(account) => {
                all.invocations += account.invocations;
                all.answered += account.answered;
                all.calls += account.calls;
            }
            Err(failure) => {
                let (plan, failure) = shrink(plan, failure);
                panic!("{plan}\nstep {}: {}", failure.step, failure.what);
            }
        }
    }
    let Account { invocations, answered, calls, .. } = all;
    println!("{} seeds: {invocations} invocations, {answered} answered, {calls} calls", plans.len());
}

#[test]
fn a_seed_is_one_history() {
    for seed in 0..12 {
        assert_eq!(try_run(&Plan::of(seed)), try_run(&Plan::of(seed)), "seed {seed}");
    }
}

/// The simulation is worth as much as the faults that it finds.
#[test]
fn every_deliberate_fault_is_found() {
    let mut missed = Vec::new();
    for mutant in Mutant::ALL {
        let failing =
            (0..SEEDS).find_map(|seed| try_run(&Plan { mutant: Some(mutant), ..Plan::of(seed) }).err().map(|failure| (seed, failure)));
        match failing {
            Some((seed, failure)) => println!("{mutant:?}: seed {seed}, step {}: {}", failure.step, failure.what),
            None => missed.push(mutant),
        }
    }
    assert_eq!(missed, [], "not found within {SEEDS} seeds");
}

//! Seeded simulation of the ingest function: real invocations over a simulated catalog, storage and clock.
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
mod storage;
mod trouble;
mod world;

use plan::Plan;

#[test]
fn seeds_keep_every_invariant() {
    let plans: Vec<Plan> = match Plan::from_environment() {
        Some(plan) => vec![plan],
        None => {
            let count = std::env::var("SIM_SEEDS").map_or(2_000, |text| text.parse().unwrap());
            (0..count).map(Plan::of).collect()
        }
    };
    let failures: Vec<String> = plans
        .iter()
        .filter_map(|plan| {
            let failure = run::run(plan).err()?;
            Some(format!("{plan} {:?}: step {}: {}", plan.delivery, failure.step, failure.what))
        })
        .collect();
    assert!(failures.is_empty(), "{} {}", failures.len(), failures.join("\n"));
}

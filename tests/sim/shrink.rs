//! From a failing plan to a smaller one that still fails.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::plan::Plan;
use crate::run::{Account, Failure, run};

/// So many runs are spent on shrinking.
const MOST_RUNS: usize = 120;

/// Runs a plan; a panic is a failure too.
pub fn try_run(plan: &Plan) -> Result<Account, Failure> {
    catch_unwind(AssertUnwindSafe(|| run(plan))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        Err(Failure { step: plan.steps, what: format!("panic: {}", text.unwrap_or("?")) })
    })
}

/// The smallest plan that was found, and how it fails.
pub fn shrink(plan: &Plan, failure: Failure) -> (Plan, Failure) {
    let mut best = (*plan, failure);
    let mut runs = 0;
    loop {
        let smaller = candidates(&best.0, best.1.step).into_iter().find_map(|candidate| {
            runs += 1;
            if runs > MOST_RUNS { None } else { Some((candidate, try_run(&candidate).err()?)) }
        });
        match smaller {
            Some(found) => best = found,
            None => return best,
        }
    }
}

/// Smaller plans, the boldest first.
fn candidates(plan: &Plan, failed_at: usize) -> Vec<Plan> {
    let steps = [failed_at, plan.steps / 2, plan.steps * 3 / 4, plan.steps.saturating_sub(10), plan.steps.saturating_sub(1)];
    let steps = steps.into_iter().filter(|steps| *steps < plan.steps).map(|steps| Plan { steps, ..*plan });
    let calmer = plan.troubles.iter().map(|kind| Plan { troubles: plan.troubles.without(kind), ..*plan });
    let fewer = (1..plan.invocations).map(|invocations| Plan { invocations, ..*plan });
    steps.chain(calmer).chain(fewer).collect()
}

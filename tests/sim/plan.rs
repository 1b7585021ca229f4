//! What a run is made of. All of it follows from the seed, unless shrinking or the environment says otherwise.

use sluice_model::mutants::Mutant;

use crate::records::Delivery;
use crate::rng::Rng;
use crate::trouble::{Trouble, Troubles};

/// The plan of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    pub seed: u64,
    /// How many decisions the scheduler makes before the trouble ends.
    pub steps: usize,
    /// How many invocations run at once, at most.
    pub invocations: usize,
    pub troubles: Troubles,
    /// How many calls of 100 get into trouble.
    pub percent: usize,
    pub delivery: Delivery,
    /// The deliberate fault of the product, if it is to have one.
    pub mutant: Option<Mutant>,
    /// Whether it tells what happens.
    pub tells: bool,
}

impl Plan {
    /// The plan of a seed.
    pub fn of(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x5eed);
        let mut troubles = Troubles::NONE;
        for kind in Trouble::ALL.iter().filter(|_| rng.chance(35)) {
            troubles = troubles.with(*kind);
        }
        Self {
            seed,
            steps: 30 + rng.below(80),
            invocations: 1 + rng.below(4),
            troubles,
            percent: 2 + rng.below(16),
            delivery: if rng.chance(50) { Delivery::InOrder } else { Delivery::AnyOrder },
            mutant: None,
            tells: false,
        }
    }

    /// The plan that the environment asks for, if it names a seed.
    pub fn from_environment() -> Option<Self> {
        let read = |name: &str| std::env::var(name).ok();
        let mut plan = Self::of(read("SIM_SEED")?.parse().unwrap());
        plan.steps = read("SIM_STEPS").map_or(plan.steps, |text| text.parse().unwrap());
        plan.invocations = read("SIM_INVOCATIONS").map_or(plan.invocations, |text| text.parse().unwrap());
        plan.troubles = read("SIM_TROUBLES").map_or(plan.troubles, |text| Troubles::parse(&text));
        plan.mutant = read("SIM_MUTANT").and_then(|name| Mutant::ALL.into_iter().find(|mutant| format!("{mutant:?}") == name));
        plan.tells = read("SIM_TELL").is_some();
        Some(plan)
    }
}

/// As the environment takes it.
impl std::fmt::Display for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { seed, steps, invocations, troubles, .. } = self;
        write!(f, "SIM_SEED={seed} SIM_STEPS={steps} SIM_INVOCATIONS={invocations} SIM_TROUBLES={troubles}")?;
        self.mutant.map_or(Ok(()), |mutant| write!(f, " SIM_MUTANT={mutant:?}"))
    }
}

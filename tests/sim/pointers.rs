//! The simulated catalog: the real [`PointerCatalog`] over pointers that fail as the scheduler says.

use std::sync::Arc;

use async_trait::async_trait;
use sluice_catalog::Services;
use sluice_catalog::pointer::{NewPointer, Pointer, PointerCatalog, PointerStore};
use sluice_model::{Class, TableName};
use sluice_table::{Catalog, CommitError, CreateOutcome, TableError};
use sluice_testkit::SeededIds;

use crate::storage;
use crate::world::{Call, Fate, LateSwap, Sim};

/// The pointers of the world.
pub struct SimPointers(Sim);

/// A catalog over the world.
pub fn catalog(sim: &Sim, ids: &Arc<SeededIds>) -> Arc<dyn Catalog> {
    let services = Services { clock: Arc::new(sim.clone()), ids: ids.clone() };
    Arc::new(PointerCatalog::over(SimPointers(sim.clone()), (storage::file_io(sim), "sim://lake"), services))
}

fn said(class: Class) -> TableError {
    TableError::Catalog { class, what: "simulated trouble".to_owned(), source: None }
}

fn said_to_commit(class: Class) -> CommitError {
    let what = "simulated trouble".to_owned();
    match class {
        Class::Conflict => CommitError::Conflict,
        Class::Transient => CommitError::Transient { what, source: None },
        Class::Unknown => CommitError::Unknown { what, source: None },
        Class::Fatal => CommitError::Fatal { what, source: None },
    }
}

impl SimPointers {
    async fn ask(&self) -> Result<(), TableError> {
        match self.0.gate(Call::Ask).await {
            Fate::Pass => Ok(()),
            Fate::Instead(class) => Err(said(class)),
            Fate::Lost | Fate::Late => Err(said(Class::Unknown)),
        }
    }
}

#[async_trait]
impl PointerStore for SimPointers {
    type Entry = ();

    async fn get(&self, name: &TableName) -> Result<Option<Pointer<()>>, TableError> {
        self.ask().await?;
        let found = self.0.world().pointers.get(name).cloned();
        Ok(found.map(|location| Pointer { location, entry: () }))
    }

    async fn insert(&self, new: NewPointer<'_>) -> Result<CreateOutcome, TableError> {
        let fate = self.0.gate(Call::Register).await;
        let mut world = self.0.world();
        let outcome = match fate {
            Fate::Instead(class) => return Err(said(class)),
            Fate::Late => return Err(said(Class::Unknown)),
            Fate::Pass | Fate::Lost if world.pointers.contains_key(new.name) => CreateOutcome::AlreadyExists,
            Fate::Pass | Fate::Lost => {
                world.pointers.insert(new.name.clone(), new.location.to_owned());
                CreateOutcome::Created
            }
        };
        if fate == Fate::Pass { Ok(outcome) } else { Err(said(Class::Unknown)) }
    }

    async fn swap(&self, old: &Pointer<()>, new: NewPointer<'_>) -> Result<(), CommitError> {
        let fate = self.0.gate(Call::Swap).await;
        let mut world = self.0.world();
        match fate {
            Fate::Instead(class) => return Err(said_to_commit(class)),
            Fate::Late => {
                world.late.push(LateSwap { name: new.name.clone(), old: old.location.clone(), new: new.location.to_owned() });
                return Err(said_to_commit(Class::Unknown));
            }
            Fate::Pass | Fate::Lost => {}
        }
        match world.pointers.get_mut(new.name) {
            Some(location) if *location == old.location => new.location.clone_into(location),
            Some(_) | None if fate == Fate::Pass => return Err(CommitError::Conflict),
            Some(_) | None => {}
        }
        if fate == Fate::Pass { Ok(()) } else { Err(said_to_commit(Class::Unknown)) }
    }

    async fn names(&self) -> Result<Vec<TableName>, TableError> {
        self.ask().await?;
        Ok(self.0.world().pointers.keys().cloned().collect())
    }

    async fn remove(&self, name: &TableName) -> Result<bool, TableError> {
        self.ask().await?;
        Ok(self.0.world().pointers.remove(name).is_some())
    }
}

//! One run: a seeded scheduler over real invocations.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use serde_json::json;
use sluice_deadletter::NoTopic;
use sluice_ingest::{Ingest, IngestError, Reply};
use sluice_model::{Class, Deadline, mutants};
use sluice_runtime::Settings;
use sluice_testkit::SeededIds;

use crate::broker::{Batch, Broker};
use crate::foreign;
use crate::oracle::{Broken, Oracle, broken};
use crate::plan::Plan;
use crate::pointers;
use crate::records::{Delivery, Tab, Topic, error_table, event};
use crate::rng::Rng;
use crate::trouble::{Trouble, Troubles};
use crate::world::{Call, Fate, Sim, now};

/// An invocation under way.
struct Task {
    future: Pin<Box<dyn Future<Output = Result<Reply, IngestError>>>>,
    batch: Batch,
    started: usize,
    /// When Lambda kills it.
    dies_at_ms: i64,
}

/// Where and why a run failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub step: usize,
    pub what: String,
}

/// What a run did, for comparing runs and for the report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Account {
    pub invocations: usize,
    pub answered: usize,
    pub calls: usize,
    /// Folded over all decisions.
    pub trace: u64,
}

/// A run under way.
pub struct Run {
    plan: Plan,
    troubles: Troubles,
    rng: Rng,
    sim: Sim,
    ids: Arc<SeededIds>,
    ingest: Arc<Ingest>,
    oracle: Oracle,
    broker: Broker,
    tasks: BTreeMap<usize, Task>,
    step: usize,
    /// When a table was last rolled back or replaced.
    disturbed: BTreeMap<Tab, usize>,
    account: Account,
}

/// Runs a plan.
pub fn run(plan: &Plan) -> Result<Account, Failure> {
    let mut run = Run::new(*plan);
    let outcome = run.chaos().and_then(|()| run.end());
    outcome.map(|()| run.account).map_err(|Broken(what)| Failure { step: run.step, what })
}

fn settings() -> Settings {
    let columns = json!({"id": {"type": "long"}, "p": {"type": "int"}, "o": {"type": "long"}, "v": {"type": "long"}});
    let config = json!({
        "catalog": {"type": "memory"},
        "source": {"id": "sim", "formats": [{"type": "envelope"}]},
        "route": {"table": "erp.{table}"},
        "table_defaults": {"on_missing_table": "create", "columns": columns, "properties": foreign::properties()},
        "tables": {
            "erp.log": {"mode": "append"},
            "erp.item": {"key": ["id"], "on_unknown_column": "add"},
            "erp.stock": {"key": ["id"], "on_unknown_column": "add", "version": "v"},
        },
        "errors": {"table": error_table().to_string()},
        "commit": {"max_attempts": 3},
    });
    Settings::from_value(config).unwrap()
}

impl Run {
    fn new(plan: Plan) -> Self {
        let mut rng = Rng::new(plan.seed);
        let sim = Sim::default();
        sim.world().now_ms = 1_772_323_200_000;
        let ids = Arc::new(SeededIds::new(plan.seed));
        let catalog = pointers::catalog(&sim, &ids);
        let topic = Topic::random(&mut rng, plan.delivery);
        let ingest = Ingest {
            settings: settings(),
            catalog: Arc::clone(&catalog),
            topic: Arc::new(NoTopic),
            clock: Arc::new(sim.clone()),
            ids: ids.clone(),
            sleep: Arc::new(sim.clone()),
        };
        for tab in Tab::ALL.into_iter().filter(|_| rng.chance(60)) {
            now(catalog.create(&tab.name(), &foreign::creation(tab))).unwrap();
        }
        let broker = Broker::new(&topic, plan.delivery);
        let mut oracle = Oracle::new(&sim, catalog, topic);
        if plan.troubles.has(Trouble::Denied) {
            oracle.may_refuse.extend(Tab::ALL);
        }
        let (tasks, disturbed, account) = (BTreeMap::new(), BTreeMap::new(), Account::default());
        let (step, troubles, ingest) = (0, plan.troubles, Arc::new(ingest));
        Self { plan, troubles, rng, sim, ids, ingest, oracle, broker, tasks, step, disturbed, account }
    }

    /// The troubled part.
    fn chaos(&mut self) -> Result<(), Broken> {
        self.oracle.look()?;
        while self.step < self.plan.steps {
            self.step += 1;
            self.sim.world().now_ms += 5;
            self.decide()?;
            self.oracle.look()?;
        }
        Ok(())
    }

    fn decide(&mut self) -> Result<(), Broken> {
        if self.tasks.len() < self.plan.invocations && (self.tasks.is_empty() || self.rng.chance(15)) {
            self.deliver();
        } else if self.rng.chance(2) && self.troubles.has(Trouble::Crash) {
            let at = self.rng.below(self.tasks.len());
            let victim = self.tasks.keys().nth(at).copied();
            self.tell(|| format!("invocation {victim:?} dies"));
            victim.map(|task| self.tasks.remove(&task));
        } else if self.rng.chance(2) && self.troubles.has(Trouble::Slow) {
            self.sim.world().now_ms += self.rng.offset(100, 20_000);
        } else if self.rng.chance(10) && !self.sim.world().late.is_empty() {
            self.arrive();
        } else if self.rng.chance(5) {
            return self.meddle();
        } else {
            return self.go_on();
        }
        Ok(())
    }

    /// A new invocation.
    fn deliver(&mut self) {
        let rebalance = self.troubles.has(Trouble::Rebalance);
        if let Some(batch) = self.broker.next(&mut self.rng, |rng| rebalance && rng.chance(20)) {
            let lives_ms = self.rng.offset(2_000, 60_000);
            self.start(batch, lives_ms);
        }
    }

    fn start(&mut self, batch: Batch, lives_ms: i64) {
        let event = event(&batch.records(&self.oracle.topic));
        let dies_at_ms = self.sim.world().now_ms + lives_ms;
        let deadline = Deadline::at(dies_at_ms, 500, self.sim.world().now_ms);
        let ingest = Arc::clone(&self.ingest);
        let future = Box::pin(async move { ingest.invoke(&event, deadline).await });
        let number = self.account.invocations;
        self.account.invocations += 1;
        self.tell(|| format!("invocation {number} begins with {:?}", batch.ranges));
        self.tasks.insert(number, Task { future, batch, started: self.step, dies_at_ms });
    }

    /// A swap that was on its way arrives, or is lost for good.
    fn arrive(&mut self) {
        let mut late = std::mem::take(&mut self.sim.world().late);
        let swap = late.swap_remove(self.rng.below(late.len()));
        self.sim.world().late = late;
        if self.rng.chance(80) {
            self.sim.land(&swap);
        }
    }

    /// Lets one call of one invocation go on.
    fn go_on(&mut self) -> Result<(), Broken> {
        let now_ms = self.sim.world().now_ms;
        self.tasks.retain(|_, task| task.dies_at_ms > now_ms);
        let idle = self.idle();
        if let Some(task) = idle {
            return self.poll(task);
        }
        let waiting: Vec<(u64, usize, Call)> =
            self.sim.world().tickets.iter().map(|(number, ticket)| (*number, ticket.task, ticket.call)).collect();
        let Some((ticket, task, call)) = self.rng.pick(&waiting).copied() else { return Ok(()) };
        let fate = self.fate(call);
        self.note((ticket, call, fate));
        self.tell(|| format!("invocation {task}: {call:?} {fate:?}"));
        self.sim.release(ticket, fate);
        self.poll(task)
    }

    /// An invocation that has not made its first call.
    fn idle(&self) -> Option<usize> {
        let world = self.sim.world();
        self.tasks.keys().find(|task| !world.tickets.values().any(|ticket| ticket.task == **task)).copied()
    }

    /// Tells what happens, for whoever looks into a failing seed.
    fn tell(&self, what: impl FnOnce() -> String) {
        if self.plan.tells {
            println!("{:4} {}", self.step, what());
        }
    }

    fn note(&mut self, decision: (u64, Call, Fate)) {
        self.account.calls += 1;
        for byte in format!("{} {decision:?}", self.step).bytes() {
            self.account.trace = (self.account.trace ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn fate(&mut self, call: Call) -> Fate {
        let kinds: &[(Trouble, Fate)] = match call {
            Call::Ask => &[(Trouble::Throttled, Fate::Instead(Class::Transient)), (Trouble::Denied, Fate::Instead(Class::Fatal))],
            Call::Register => &[
                (Trouble::Throttled, Fate::Instead(Class::Transient)),
                (Trouble::LostReply, Fate::Lost),
                (Trouble::LostRequest, Fate::Instead(Class::Unknown)),
            ],
            Call::Swap => &[
                (Trouble::Throttled, Fate::Instead(Class::Transient)),
                (Trouble::Conflict, Fate::Instead(Class::Conflict)),
                (Trouble::LostReply, Fate::Lost),
                (Trouble::LostRequest, Fate::Instead(Class::Unknown)),
                (Trouble::LateRequest, Fate::Late),
                (Trouble::Denied, Fate::Instead(Class::Fatal)),
            ],
            Call::Read | Call::Delete => &[(Trouble::Storage, Fate::Instead(Class::Transient))],
            Call::Write => &[(Trouble::Storage, Fate::Instead(Class::Transient)), (Trouble::Storage, Fate::Lost)],
            Call::Sleep => &[],
        };
        // The decisive call gets into trouble more often.
        let percent = if call == Call::Swap { self.plan.percent * 3 } else { self.plan.percent };
        let kinds: Vec<Fate> = kinds.iter().filter(|(kind, _)| self.troubles.has(*kind)).map(|(_, fate)| *fate).collect();
        if self.rng.chance(percent) { self.rng.pick(&kinds).copied().unwrap_or(Fate::Pass) } else { Fate::Pass }
    }

    fn poll(&mut self, number: usize) -> Result<(), Broken> {
        let Some(task) = self.tasks.get_mut(&number) else { return Ok(()) };
        self.sim.world().current = Some(number);
        // Only the product is at fault, never the oracle.
        let polled = mutants::with(self.plan.mutant, || task.future.as_mut().poll(&mut Context::from_waker(Waker::noop())));
        self.sim.world().current = None;
        match polled {
            Poll::Pending => Ok(()),
            Poll::Ready(result) => match self.tasks.remove(&number) {
                Some(task) => self.answered(&task, result),
                None => Ok(()),
            },
        }
    }

    /// Checks an invocation's answer and acknowledges its batch.
    fn answered(&mut self, task: &Task, result: Result<Reply, IngestError>) -> Result<(), Broken> {
        self.account.answered += 1;
        self.tell(|| format!("an invocation answers {result:?}"));
        self.oracle.look()?;
        let topic = &self.oracle.topic;
        let records = task.batch.records(topic);
        let reply = match result {
            Ok(reply) => reply,
            Err(error) => {
                let may_be_fatal = self.troubles.has(Trouble::Denied) || self.troubles.has(Trouble::Replace);
                let unexpected = error.class() == Class::Fatal && !may_be_fatal;
                return if unexpected { broken("R4", format!("an invocation failed for good: {error}")) } else { Ok(()) };
            }
        };
        if reply.unbalanced != 0 || reply.tally.unbalanced() != 0 || reply.tally.received != records.len() as u64 {
            return broken("R1", format!("{} records came in, the account is {:?}", records.len(), reply.tally));
        }
        for record in records {
            let disturbed = record.tab.and_then(|tab| self.disturbed.get(&tab)).is_some_and(|step| *step >= task.started);
            if !disturbed && !self.oracle.is_decided(record) {
                return broken("R1", format!("{record:?} was acknowledged, but is in no table: {:?}", reply.tally));
            }
        }
        self.broker.acknowledge(topic, &task.batch);
        Ok(())
    }

    /// Another program does something.
    fn meddle(&mut self) -> Result<(), Broken> {
        const KINDS: [Trouble; 6] =
            [Trouble::Append, Trouble::Compact, Trouble::Expire, Trouble::Rollback, Trouble::AddColumn, Trouble::Replace];
        let kinds: Vec<Trouble> = KINDS.into_iter().filter(|kind| self.troubles.has(*kind)).collect();
        let Some(kind) = self.rng.pick(&kinds).copied() else { return self.go_on() };
        let tab = Tab::ALL[self.rng.below(3)];
        let any = if self.rng.chance(25) { error_table() } else { tab.name() };
        self.tell(|| format!("another program: {} on {tab:?} or {any}", kind.name()));
        match kind {
            Trouble::Append => foreign::append(&mut self.oracle, &self.ids, i64::try_from(self.step).unwrap()),
            Trouble::Compact => foreign::compact(&self.oracle, &any),
            Trouble::Expire => foreign::expire(&mut self.oracle, &self.sim, (&any, &mut self.rng))?,
            Trouble::AddColumn => {
                foreign::add_column(&self.oracle);
                self.oracle.may_differ |= self.plan.invocations > 1;
            }
            Trouble::Rollback => {
                self.quiesce(tab);
                if foreign::roll_back(&self.oracle, &tab.name(), &mut self.rng) {
                    self.rewind(tab)?;
                }
            }
            Trouble::Replace => {
                self.quiesce(tab);
                self.oracle.may_differ |= self.plan.invocations > 1;
                if foreign::replace(&mut self.oracle, tab, &mut self.rng) {
                    self.rewind(tab)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The order of a key without a version is Kafka's: before such a table goes back, its operator stops what is under way.
    fn quiesce(&mut self, tab: Tab) {
        if tab == Tab::Item && self.plan.delivery == Delivery::InOrder {
            self.tasks.clear();
            self.sim.world().late.clear();
        }
    }

    /// What a table has lost is delivered again.
    fn rewind(&mut self, tab: Tab) -> Result<(), Broken> {
        self.disturbed.insert(tab, self.step);
        self.oracle.look()?;
        let oracle = &self.oracle;
        self.broker.rewind(&oracle.topic, |record| record.tab != Some(tab) || oracle.is_decided(record));
        Ok(())
    }

    /// The trouble is over: what is not acknowledged is delivered, then everything once more.
    fn end(&mut self) -> Result<(), Broken> {
        self.troubles = Troubles::NONE;
        if self.rng.chance(50) {
            self.tasks.clear();
        }
        self.settle()?;
        let late = std::mem::take(&mut self.sim.world().late);
        for swap in late.iter().filter(|_| self.rng.chance(50)) {
            self.sim.land(swap);
            self.oracle.look()?;
        }
        while let Some(batch) = self.broker.rest(&self.oracle.topic, 6) {
            self.alone(batch)?;
        }
        for record in self.oracle.topic.all() {
            if !self.oracle.is_decided(record) {
                return broken("R1", format!("{record:?} is lost"));
            }
        }
        let before = self.sim.world().pointers.clone();
        let everything = self.broker.everything();
        self.alone(everything)?;
        if before == self.sim.world().pointers { Ok(()) } else { broken("R2", "delivering everything again has changed a table") }
    }

    /// Lets everything that is under way come to its end.
    fn settle(&mut self) -> Result<(), Broken> {
        while !self.tasks.is_empty() {
            self.go_on()?;
            self.oracle.look()?;
        }
        Ok(())
    }

    /// One invocation without trouble, which must succeed.
    fn alone(&mut self, batch: Batch) -> Result<(), Broken> {
        let rest = self.broker.rest(&self.oracle.topic, 6);
        self.start(batch, 600_000);
        self.settle()?;
        let again = self.broker.rest(&self.oracle.topic, 6);
        if rest.is_some() && rest == again { broken("R1", "an invocation without trouble did not succeed") } else { Ok(()) }
    }
}

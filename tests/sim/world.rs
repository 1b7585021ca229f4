//! What the invocations share: files, pointers, the clock, and the calls that wait for the scheduler.
//!
//! Nothing here runs by itself. A call of an invocation stops at its [`Gate`]; the scheduler decides which call goes on next and what becomes
//! of it. Calls that no invocation makes (those of the oracle and of foreign programs) go straight through.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use async_trait::async_trait;
use bytes::Bytes;
use sluice_model::{Class, Clock, TableName};
use sluice_table::Sleep;

/// What a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// The catalog is asked.
    Ask,
    /// A table is registered.
    Register,
    /// A pointer is swapped: the decisive call of a commit.
    Swap,
    /// A file is read.
    Read,
    /// A file is written.
    Write,
    /// A file is deleted.
    Delete,
    /// Nothing but waiting.
    Sleep,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is made and answered.
    Pass,
    /// It is not made; the answer is that of the class.
    Instead(Class),
    /// It is made; the answer is that nobody knows.
    Lost,
    /// It is made later; the answer is that nobody knows.
    Late,
}

/// A call that waits.
#[derive(Debug)]
pub struct Ticket {
    pub task: usize,
    pub call: Call,
    waker: Waker,
    fate: Option<Fate>,
}

/// A swap that is still on its way.
#[derive(Debug, Clone)]
pub struct LateSwap {
    pub name: TableName,
    pub old: String,
    pub new: String,
}

/// The state.
#[derive(Debug, Default)]
pub struct World {
    pub files: BTreeMap<String, Bytes>,
    pub pointers: BTreeMap<TableName, String>,
    pub now_ms: i64,
    pub late: Vec<LateSwap>,
    /// Files deleted since the last look.
    pub deleted: Vec<String>,
    /// The invocation that is being polled.
    pub current: Option<usize>,
    pub tickets: BTreeMap<u64, Ticket>,
    next_ticket: u64,
}

/// The world, shared.
#[derive(Debug, Clone, Default)]
pub struct Sim(Arc<Mutex<World>>);

impl Sim {
    pub fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }

    /// Waits for the scheduler's word on a call.
    pub fn gate(&self, call: Call) -> Gate {
        Gate { sim: self.clone(), call, ticket: None }
    }

    /// Lets a waiting call go on.
    pub fn release(&self, ticket: u64, fate: Fate) {
        let waker = self.world().tickets.get_mut(&ticket).map(|ticket| {
            ticket.fate = Some(fate);
            ticket.waker.clone()
        });
        waker.unwrap().wake();
    }

    /// A swap that was on its way arrives.
    pub fn land(&self, swap: &LateSwap) {
        let mut world = self.world();
        if let Some(pointer) = world.pointers.get_mut(&swap.name).filter(|pointer| **pointer == swap.old) {
            pointer.clone_from(&swap.new);
        }
    }
}

/// A call at the scheduler's door.
pub struct Gate {
    sim: Sim,
    call: Call,
    ticket: Option<u64>,
}

impl Future for Gate {
    type Output = Fate;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Fate> {
        let sim = self.sim.clone();
        let mut world = sim.world();
        match self.ticket {
            None => {
                let Some(task) = world.current else { return Poll::Ready(Fate::Pass) };
                let number = world.next_ticket;
                world.next_ticket += 1;
                world.tickets.insert(number, Ticket { task, call: self.call, waker: context.waker().clone(), fate: None });
                self.ticket = Some(number);
                Poll::Pending
            }
            Some(number) => match world.tickets.get_mut(&number) {
                Some(Ticket { fate: Some(fate), .. }) => {
                    let fate = *fate;
                    world.tickets.remove(&number);
                    self.ticket = None;
                    Poll::Ready(fate)
                }
                Some(ticket) => {
                    ticket.waker = context.waker().clone();
                    Poll::Pending
                }
                None => Poll::Pending,
            },
        }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.sim.world().tickets.remove(&ticket);
        }
    }
}

impl Clock for Sim {
    fn now_ms(&self) -> i64 {
        self.world().now_ms
    }
}

/// Sleeping moves the clock, when the scheduler lets it.
#[async_trait]
impl Sleep for Sim {
    async fn sleep(&self, ms: u64) {
        self.gate(Call::Sleep).await;
        self.world().now_ms += i64::try_from(ms).unwrap();
    }
}

/// Runs what makes no call that waits.
pub fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a call outside of an invocation had to wait"),
    }
}

//! Two instances that are killed at random, a broker that dies, groups that rebalance: the tables must equal the model.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::broker::{self, produce};
use crate::model::Model;
use crate::program::{Program, Running};
use crate::records::{ERROR_TOPIC, TOPICS, config, record};
use crate::rng::Rng;

const RECORDS: u64 = 200_000;
const PORTION: u64 = 10_000;

struct Instances<'p> {
    program: &'p Program,
    running: Vec<Running>,
}

impl<'p> Instances<'p> {
    fn new(program: &'p Program) -> Self {
        let running = (0..2).map(|number| Self::start(program, number)).collect();
        Self { program, running }
    }

    fn start(program: &Program, number: usize) -> Running {
        let name = format!("instance-{number}");
        let mut arguments = vec!["run", "--concurrency", "2", "--batch-size", "1500", "--batch-window-ms", "100", "--report-every-s", "1"];
        // The first takes its partitions up again at once; for the other, the group has to meet anew.
        if number == 0 {
            arguments.extend(["--instance-id", &name]);
        }
        program.start(&arguments, &name)
    }

    /// Kills one without a word and starts it anew.
    fn kill_one(&mut self, number: usize) {
        self.running.remove(number).kill();
        self.running.insert(number, Self::start(self.program, number));
    }

    /// Starts those anew that ended by themselves, as whatever supervises them would do; tells how many.
    fn revive(&mut self) -> usize {
        let mut ended = 0;
        for number in 0..self.running.len() {
            if !self.running[number].is_alive() {
                ended += 1;
                self.running[number] = Self::start(self.program, number);
            }
        }
        ended
    }
}

#[tokio::test]
async fn after_kills_restarts_and_rebalances_the_tables_equal_the_model() {
    let seed = std::env::var("STREAM_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7);
    let mut rng = Rng(seed);
    broker::topics(&TOPICS).await;
    broker::topics(&[ERROR_TOPIC]).await;
    let program = Program::new(&config(&broker::address()));
    let producer = broker::producer();
    let mut model = Model::default();
    let mut instances = Instances::new(&program);
    let (mut kills, mut ended) = (0, 0);
    for portion in 0..RECORDS / PORTION {
        let records = (portion * PORTION..(portion + 1) * PORTION).map(|n| record(&mut rng, n)).collect();
        produce(&producer, records, &mut model).await;
        tokio::time::sleep(Duration::from_millis(300 + rng.below(900))).await;
        match (portion, rng.below(3)) {
            (6 | 13, _) => {
                broker::tell("kill");
                broker::tell("start");
            }
            (_, 0) => {
                kills += 1;
                instances.kill_one(0);
            }
            (_, 1) => {
                kills += 1;
                instances.kill_one(1);
            }
            (_, _) => {}
        }
        ended += instances.revive();
    }
    assert!(kills >= 5, "{kills}");
    instances.running.into_iter().for_each(Running::kill);
    let last = program.run_to_end(&[]);
    eprintln!(
        "{} records, {} refused, {kills} kills, {ended} instances ended by themselves; the last run: {last}",
        model.records,
        model.refused.len()
    );
    model.compare(&program);
    let letters: BTreeSet<_> = broker::dead_letters(ERROR_TOPIC).into_iter().collect();
    assert_eq!(letters, model.refused, "each dead letter is in the error topic, at least once");
    // Everything once more: all of it is known.
    let last = program.run_to_end(&["--reset"]);
    assert_eq!((last["rows"].as_u64(), last["deletes"].as_u64()), (Some(0), Some(0)), "{last}");
    model.compare(&program);
}

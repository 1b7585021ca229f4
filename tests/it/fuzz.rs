//! A moment of fuzzing in every test run: each target on its seeds, and on thousands of variants of them that are the same in every run.
//! For long runs: `cargo +nightly fuzz run --fuzz-dir tests/fuzz TARGET`.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use sluice_model::IdSource as _;
use sluice_testkit::SeededIds;
use sluice_tests::fuzz::TARGETS;

const VARIANTS: usize = 3_000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn files(folder: &Path) -> Vec<Vec<u8>> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).map(|entries| entries.map(|entry| entry.unwrap().path()).collect()).unwrap_or_default();
    paths.sort();
    paths.iter().filter(|path| path.is_file()).map(|path| std::fs::read(path).unwrap()).collect()
}

/// The values of all records of the sample events and of the conformance cases.
fn values() -> Vec<Vec<u8>> {
    let mut values = Vec::new();
    for event in files(&root().join("events/kafka")) {
        let event: serde_json::Value = serde_json::from_slice(&event).unwrap();
        for record in event["records"].as_object().unwrap().values().flat_map(|records| records.as_array().unwrap()) {
            let decoded = record["value"].as_str().and_then(|text| base64::engine::general_purpose::STANDARD.decode(text).ok());
            values.extend(decoded);
        }
    }
    for case in files(&root().join("tests/corpus")) {
        let Ok(case) = serde_json::from_slice::<serde_json::Value>(&case) else { continue };
        for record in case["batches"].as_array().into_iter().flatten().filter_map(|batch| batch.as_array()).flatten() {
            values.extend(record["value"].get("json").map(|json| json.to_string().into_bytes()));
        }
    }
    values
}

/// What a target begins with. Findings of long runs are kept under `tests/fuzz/seeds/`.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let mut seeds = files(&root().join("tests/fuzz/seeds").join(target));
    match target {
        "door" => seeds.extend(files(&root().join("events/kafka"))),
        "tape" => seeds.extend(values()),
        "codec" => seeds.extend(values().into_iter().map(|value| [&[8], br#"{"id":1}"#.as_slice(), &value].concat())),
        "rows" => seeds
            .extend(values().into_iter().enumerate().map(|(index, value)| [&[index as u8, (index * 37) as u8], value.as_slice()].concat())),
        "config" => {
            seeds.push(std::fs::read(root().join("events/sluice.toml")).unwrap());
            seeds.extend(
                ["total >= 0 AND NOT (a IN (1, 2) OR b LIKE 'x%')", "bucket(16, id)", "map<string, struct<n: int>>"]
                    .map(|text| text.as_bytes().to_vec()),
            );
        }
        "checks" => seeds.extend(
            [
                "l >= 0 AND NOT (s IN ('a', 'b') OR s LIKE 'x%')",
                "d BETWEEN 0.5 AND 1e3 OR m IS NULL",
                "t > '2026-01-01' AND (l + 1) * 2 <> 7",
                "coalesce(s, '') = upper(s)",
            ]
            .map(|text| text.as_bytes().to_vec()),
        ),
        "ledger" => seeds.push(b"0 3 erp%20prod cdc.unified 5|5-9,11.2-12".to_vec()),
        other => panic!("no seeds for {other}"),
    }
    seeds
}

/// One small change: a byte replaced, removed or put in, a piece doubled, or the head of another seed.
fn mutate(bytes: &mut Vec<u8>, ids: &SeededIds, seeds: &[Vec<u8>]) {
    const BYTES: &[u8] = b"{}[],:\"\\u0019-+.eE truefalsn\x00\xff\xed";
    let random = ids.next_u128();
    let at = if bytes.is_empty() { 0 } else { (random >> 8) as usize % bytes.len() };
    let byte = BYTES[(random >> 72) as usize % BYTES.len()];
    match random % 5 {
        0 if !bytes.is_empty() => bytes[at] = byte,
        1 if !bytes.is_empty() => drop(bytes.remove(at)),
        2 => bytes.insert(at, byte),
        3 => {
            let end = (at + 1 + (random >> 40) as usize % 16).min(bytes.len());
            let piece = bytes[at.min(end)..end].to_vec();
            bytes.splice(at..at, piece);
        }
        _ => {
            let other = &seeds[(random >> 40) as usize % seeds.len()];
            bytes.splice(at.., other[other.len() / 2..].iter().copied());
        }
    }
}

#[test]
fn no_variant_of_any_seed_brings_a_target_down() {
    for (name, target) in TARGETS {
        let seeds = seeds(name);
        seeds.iter().for_each(|seed| target(seed));
        let ids = SeededIds::new(11);
        for variant in 0..VARIANTS {
            let mut bytes = seeds[variant % seeds.len()].clone();
            for _ in 0..=(variant % 4) {
                mutate(&mut bytes, &ids, &seeds);
            }
            target(&bytes);
        }
    }
}

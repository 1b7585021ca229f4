//! Every key of the configuration, from the code that reads it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};
use sluice_catalog::CatalogConfig;
use sluice_kafka::config::KafkaConfig;
use sluice_maintenance::MaintenanceSettings;
use sluice_model::config::{Problems, Shape, Shapes};
use sluice_runtime::Settings;

/// Keys by their paths, with what they take and a configuration in which they are read. `[]` in a path is each item of a list, `*` each key of one's own.
pub(super) type Keys = BTreeMap<String, (Shape, Value)>;

/// How often the search goes round at most: as deep as types stand in one another.
const MAX_ROUNDS: usize = 4;

/// All keys: those of a configuration that has everything once, and of each that has another `type` somewhere, because a type decides which keys there are.
pub(super) fn keys() -> Keys {
    let mut keys = Keys::new();
    let (mut tried, mut to_try) = (BTreeSet::new(), vec![everything()]);
    for _ in 0..MAX_ROUNDS {
        for config in std::mem::take(&mut to_try) {
            for (path, shape) in read(&config).1 {
                let new = types(&path, &shape).iter().filter(|kind| tried.insert((path.clone(), **kind)));
                to_try.extend(new.filter_map(|kind| with(&config, &path, &json!(kind))));
                keys.entry(general(&path)).or_insert_with(|| (shape, config.clone()));
            }
        }
    }
    keys
}

/// What a key that is a type may be.
fn types(path: &str, shape: &Shape) -> &'static [&'static str] {
    match shape {
        Shape::Choice(types) if path.ends_with(".type") => types,
        Shape::Choice(_) | Shape::Flag | Shape::Integer | Shape::Number | Shape::Text | Shape::List(_) | Shape::Table(_) => &[],
        Shape::OneKeyOf(_) | Shape::Either(_, _) | Shape::Any => &[],
    }
}

/// What reading a configuration gives, as text that shows every setting, and the keys that were asked for.
pub(super) fn read(config: &Value) -> (String, Shapes) {
    let (mut problems, base) = (Problems::noting_keys(), Path::new("/"));
    let part = |name: &str| config.get(name).cloned().unwrap_or(Value::Null);
    let settings = Settings::read(config.clone(), &mut problems);
    let catalog = CatalogConfig::read_noting(part("catalog"), base, &mut problems);
    let kafka = KafkaConfig::read_noting(config, base, &mut problems);
    let maintenance = MaintenanceSettings::read(part("maintenance"), &mut problems);
    let keys = problems.take_keys();
    let Settings { source, route, limits, errors, commit, .. } = &settings;
    let tables: Vec<_> = settings.configured_tables().map(|name| settings.table(&name, &BTreeMap::new())).collect();
    let text = format!(
        "{source:?} {route:?} {limits:?} {errors:?} {commit:?} {tables:?} {catalog:?} {kafka:?} {maintenance:?} {:?}",
        problems.into_vec()
    );
    (text, keys)
}

/// A configuration with everything once that is there only when it is named. Types are tried one after the other.
fn everything() -> Value {
    let security = json!({"type": "plaintext"});
    json!({
        "catalog": {"type": "sql"},
        "source": {"id": "kafka", "formats": [{"type": "envelope"}], "kafka": {"brokers": "b:9092", "security": security}},
        "registries": {"r": {"type": "confluent"}},
        "route": {},
        "tables": {"a.b": {"columns": {"c": {}}}},
        "table_defaults": {"columns": {"c": {}}},
        "errors": {"topic": "errors", "security": security},
    })
}

/// The path of every such key: `tables."a.b".mode` is `tables.*.mode`, `source.formats[0].type` is `source.formats[].type`.
fn general(path: &str) -> String {
    let parts = steps(path).into_iter().map(|step| match step {
        Step::Key(key) => format!(".{key}"),
        Step::Own(_) => ".*".to_owned(),
        Step::Item(_) => "[]".to_owned(),
    });
    parts.collect::<String>().trim_start_matches('.').to_owned()
}

enum Step {
    Key(String),
    Own(String),
    Item(usize),
}

fn steps(path: &str) -> Vec<Step> {
    let (mut steps, mut rest) = (Vec::new(), path);
    while !rest.is_empty() {
        rest = rest.strip_prefix('.').unwrap_or(rest);
        let (step, after) = if let Some((name, after)) = rest.strip_prefix('"').and_then(|own| own.split_once('"')) {
            (Step::Own(name.to_owned()), after)
        } else if let Some((index, after)) = rest.strip_prefix('[').and_then(|item| item.split_once(']')) {
            (Step::Item(index.parse().unwrap_or(0)), after)
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            (Step::Key(rest[..end].to_owned()), &rest[end..])
        };
        steps.push(step);
        rest = after;
    }
    steps
}

/// The configuration with another value at a path; `None` where that leads through something that is no table.
pub(super) fn with(config: &Value, path: &str, value: &Value) -> Option<Value> {
    let mut changed = config.clone();
    let mut at = &mut changed;
    for step in steps(path) {
        at = match step {
            Step::Key(key) | Step::Own(key) => {
                if at.is_null() {
                    *at = json!({});
                }
                at.as_object_mut()?.entry(key).or_insert(Value::Null)
            }
            Step::Item(index) => at.get_mut(index)?,
        };
    }
    *at = value.clone();
    Some(changed)
}

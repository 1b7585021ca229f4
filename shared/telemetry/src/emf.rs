//! CloudWatch's embedded metric format: a line of JSON from which CloudWatch Logs takes metrics.
//!
//! Limits of the format: 100 metrics in a document, 100 values of a metric in it, every member that a directive names is at the root.

use serde_json::{Map, Value, json};

use crate::Metric;

/// The namespace of all metrics.
pub const NAMESPACE: &str = "Sluice";
/// The only dimension: the function's name, spelled as in Lambda's own metrics.
pub const DIMENSION: &str = "FunctionName";
/// The most values of one metric in a document.
pub const MAX_VALUES: usize = 100;

/// Where and when something was measured.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The function's name.
    pub function: &'a str,
    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub now_ms: i64,
}

/// The values of one metric in one document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measure {
    /// The metric.
    pub metric: Metric,
    /// Its values; without one it is left out.
    pub values: Vec<i64>,
}

impl Measure {
    /// A metric with one value.
    #[must_use]
    pub fn one(metric: Metric, value: i64) -> Self {
        Self { metric, values: vec![value] }
    }
}

/// The document: the metrics, and beside them `properties`, which are for people.
///
/// Of more than [`MAX_VALUES`] values the largest are kept: with times, those that one looks for.
#[must_use]
pub fn document(place: Place<'_>, measures: Vec<Measure>, properties: Map<String, Value>) -> Value {
    let mut definitions = Vec::new();
    let mut root = properties;
    root.insert(DIMENSION.to_owned(), place.function.into());
    for Measure { metric, mut values } in measures {
        let (name, unit) = metric.spelling();
        values.sort_unstable_by(|a, b| b.cmp(a));
        values.truncate(MAX_VALUES);
        let value = match values.as_slice() {
            [] => continue,
            [one] => json!(one),
            [..] => json!(values),
        };
        definitions.push(json!({"Name": name, "Unit": unit.as_str()}));
        root.insert(name, value);
    }
    let directive = json!({"Namespace": NAMESPACE, "Dimensions": [[DIMENSION]], "Metrics": definitions});
    root.insert("_aws".to_owned(), json!({"Timestamp": place.now_ms, "CloudWatchMetrics": [directive]}));
    Value::Object(root)
}

/// A line as a document, after it was compared with what the specification of the embedded metric format demands.
#[cfg(test)]
pub(crate) fn checked(line: &str) -> Value {
    assert!(!line.contains('\n') && line.len() <= 262_144, "{} bytes", line.len());
    let document: Value = serde_json::from_str(line).unwrap();
    let metadata = document["_aws"].as_object().unwrap();
    assert_eq!(
        metadata.keys().map(String::as_str).collect::<std::collections::BTreeSet<_>>(),
        std::collections::BTreeSet::from(["Timestamp", "CloudWatchMetrics"])
    );
    assert!(metadata["Timestamp"].is_i64());
    for directive in metadata["CloudWatchMetrics"].as_array().unwrap() {
        assert_eq!(directive.as_object().unwrap().len(), 3);
        assert!((1..=1024).contains(&directive["Namespace"].as_str().unwrap().len()));
        for set in directive["Dimensions"].as_array().unwrap() {
            assert!(set.as_array().unwrap().len() <= 30);
            for dimension in set.as_array().unwrap() {
                assert!((1..=1024).contains(&document[dimension.as_str().unwrap()].as_str().unwrap().len()));
            }
        }
        let metrics = directive["Metrics"].as_array().unwrap();
        assert!((1..=100).contains(&metrics.len()), "{} metrics", metrics.len());
        let names: std::collections::BTreeSet<_> = metrics.iter().map(|metric| metric["Name"].as_str().unwrap()).collect();
        assert_eq!(names.len(), metrics.len(), "a metric is defined twice");
        for metric in metrics {
            assert!(["Count", "Bytes", "Milliseconds", "Seconds"].contains(&metric["Unit"].as_str().unwrap()));
            let value = &document[metric["Name"].as_str().unwrap()];
            let values = value.as_array().map_or_else(|| vec![value.clone()], Clone::clone);
            assert!((1..=MAX_VALUES).contains(&values.len()) && values.iter().all(Value::is_number), "{metric}: {value}");
        }
    }
    document
}

//! `sluice config-schema`: the configuration as a JSON Schema, for editors. Keys, types and choices come from the code that reads them, meanings and defaults from
//! docs/configuration.md; tests hold the two together.

mod keys;
mod reference;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use sluice_model::config::Shape;

use keys::{Keys, keys};
use reference::{Entry, entries};

/// The page that says what keys mean.
const PAGE: &str = include_str!("../../../../../docs/configuration.md");

/// The schema, as text.
pub(crate) fn text() -> String {
    format!("{:#}", schema(&keys(), &entries(PAGE)))
}

fn schema(keys: &Keys, entries: &[Entry]) -> Value {
    let mut root = Node::default();
    for (path, (shape, _)) in keys {
        let mut leaf = of_shape(shape);
        if let Some(entry) = entries.iter().find(|entry| entry.is_of(path)) {
            leaf["description"] = entry.meaning.as_str().into();
            if let Some(default) = &entry.default {
                leaf["default"] = default.clone();
            }
        }
        root.at(path).leaf = Some(leaf);
    }
    let mut schema = root.schema();
    schema["$schema"] = "http://json-schema.org/draft-07/schema#".into();
    schema["title"] = "sluice.toml".into();
    schema
}

/// A place in the configuration: a key with a value, or a table, or a list of tables.
#[derive(Default)]
struct Node {
    leaf: Option<Value>,
    keys: BTreeMap<String, Node>,
    /// What each key of one's own leads to.
    own: Option<Box<Node>>,
    /// What each item is.
    items: Option<Box<Node>>,
}

impl Node {
    fn at(&mut self, path: &str) -> &mut Node {
        let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
        let next: &mut Node = match first.strip_suffix("[]") {
            Some(list) => self.keys.entry(list.to_owned()).or_default().items.get_or_insert_default(),
            None if first == "*" => self.own.get_or_insert_default(),
            None => self.keys.entry(first.to_owned()).or_default(),
        };
        match rest {
            Some(rest) => next.at(rest),
            None => next,
        }
    }

    fn schema(&self) -> Value {
        if let Some(items) = &self.items {
            return json!({"type": "array", "items": items.schema()});
        }
        if let Some(leaf) = &self.leaf {
            return leaf.clone();
        }
        let properties: Map<String, Value> = self.keys.iter().map(|(key, node)| (key.clone(), node.schema())).collect();
        // Unknown keys are refused.
        let others = self.own.as_ref().map_or(Value::Bool(false), |own| own.schema());
        json!({"type": "object", "properties": properties, "additionalProperties": others})
    }
}

fn of_shape(shape: &Shape) -> Value {
    match shape {
        Shape::Flag => json!({"type": "boolean"}),
        Shape::Integer => json!({"type": "integer"}),
        Shape::Number => json!({"type": "number"}),
        Shape::Text => json!({"type": "string"}),
        Shape::Choice(choices) => json!({"enum": choices}),
        Shape::List(item) => json!({"type": "array", "items": of_shape(item)}),
        Shape::Table(value) => json!({"type": "object", "additionalProperties": of_shape(value)}),
        Shape::OneKeyOf(keys) => {
            let properties: Map<String, Value> = keys.iter().map(|key| ((*key).to_owned(), json!({"type": "string"}))).collect();
            json!({"type": "object", "properties": properties, "additionalProperties": false, "minProperties": 1, "maxProperties": 1})
        }
        Shape::Either(one, other) => json!({"anyOf": [of_shape(one), of_shape(other)]}),
        Shape::Any => json!({}),
    }
}

#[cfg(test)]
mod tests;

//! Reading configuration so that all problems are told together, each with its key path.
//!
//! A section is a JSON object (TOML is turned into JSON first). Each key is read once, by its type; what is left over is an unknown
//! key. Nothing stops at the first problem.

mod shape;

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub use shape::{Shape, Shapes, shape_of};

/// The codes of configuration errors; the function refuses to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ConfigCode {
    /// A key or value that is not allowed.
    ConfigInvalid,
    /// A key column of a type that Iceberg forbids for identifier fields.
    KeyTypeNotAllowed,
    /// Two configured tables that fold to one name.
    TableNameCollision,
    /// Known vocabulary that this version cannot do yet.
    ConfigUnsupported,
}

impl ConfigCode {
    /// The code as it is written in messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ConfigInvalid => "CONFIG_INVALID",
            Self::KeyTypeNotAllowed => "KEY_TYPE_NOT_ALLOWED",
            Self::TableNameCollision => "TABLE_NAME_COLLISION",
            Self::ConfigUnsupported => "CONFIG_UNSUPPORTED",
        }
    }
}

/// One problem of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ConfigProblem {
    /// Its code.
    pub code: ConfigCode,
    /// The key at fault, with dots: `table_defaults.on_stale`.
    pub path: String,
    /// What is wrong and what would be right.
    pub message: String,
}

impl std::fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}: {}", self.code.as_str(), self.path, self.message)
    }
}

/// The problems found so far.
#[derive(Debug, Default)]
pub struct Problems {
    found: Vec<ConfigProblem>,
    /// Every key that was asked for, where somebody wants to know.
    asked: Option<Shapes>,
}

impl Problems {
    /// One that also notes every key that is asked for and what it takes: the reference of the configuration is made of that.
    #[must_use]
    pub fn noting_keys() -> Self {
        Self { found: Vec::new(), asked: Some(Shapes::new()) }
    }

    /// The keys that were asked for, by their paths; empty unless they were to be noted.
    pub fn take_keys(&mut self) -> Shapes {
        self.asked.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Notes a key that is asked for, by its path, where that is wanted. It mostly is not: settings of tables are read in every batch.
    fn note(&mut self, asked_for: impl FnOnce() -> (String, Shape)) {
        if let Some(asked) = &mut self.asked {
            let (path, shape) = asked_for();
            asked.insert(path, shape);
        }
    }

    /// Adds a problem.
    pub fn add(&mut self, code: ConfigCode, path: &str, message: impl Into<String>) {
        self.found.push(ConfigProblem { code, path: path.to_owned(), message: message.into() });
    }

    /// All problems, in the order of the file.
    #[must_use]
    pub fn into_vec(self) -> Vec<ConfigProblem> {
        self.found
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }
}

/// An object of the configuration whose keys are taken out one by one.
#[derive(Debug)]
pub struct Section {
    path: String,
    fields: Map<String, Value>,
}

impl Section {
    /// The section at `path`. A value that is no table is a problem and reads as an empty section.
    pub fn new(path: &str, value: Value, problems: &mut Problems) -> Self {
        match value {
            Value::Object(fields) => Self { path: path.to_owned(), fields },
            Value::Null => Self { path: path.to_owned(), fields: Map::new() },
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                problems.add(ConfigCode::ConfigInvalid, path, "expected a table of keys");
                Self { path: path.to_owned(), fields: Map::new() }
            }
        }
    }

    /// The full path of a key of this section.
    #[must_use]
    pub fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// The section's own path.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The raw value of a key, taken out, by somebody who knows what it takes.
    pub fn take_as(&mut self, key: &str, shape: Shape, problems: &mut Problems) -> Option<Value> {
        problems.note(|| (self.path_of(key), shape));
        self.take(key)
    }

    /// The raw value of a key that another reads, taken out.
    pub fn take(&mut self, key: &str) -> Option<Value> {
        self.fields.remove(key)
    }

    /// The value of a key by its type; absent gives `None`, a wrong value gives `None` and a problem.
    pub fn read<T: DeserializeOwned>(&mut self, key: &str, problems: &mut Problems) -> Option<T> {
        problems.note(|| (self.path_of(key), shape_of::<T>()));
        let value = self.take(key)?;
        match serde_json::from_value(value) {
            Ok(read) => Some(read),
            Err(error) => {
                problems.add(ConfigCode::ConfigInvalid, &self.path_of(key), error.to_string());
                None
            }
        }
    }

    /// The text of a key turned into something by `parse`, whose error is the problem.
    pub fn parse<T, E: std::fmt::Display>(
        &mut self,
        key: &str,
        parse: impl Fn(&str) -> Result<T, E>,
        problems: &mut Problems,
    ) -> Option<T> {
        let text: String = self.read(key, problems)?;
        match parse(&text) {
            Ok(read) => Some(read),
            Err(error) => {
                problems.add(ConfigCode::ConfigInvalid, &self.path_of(key), error.to_string());
                None
            }
        }
    }

    /// A list of texts, each turned into something by `parse`; its shape is that of a list of texts.
    pub fn parse_list<T, E: std::fmt::Display>(
        &mut self,
        key: &str,
        parse: impl Fn(&str) -> Result<T, E>,
        problems: &mut Problems,
    ) -> Option<Vec<T>> {
        let texts: Vec<String> = self.read(key, problems)?;
        let mut read = Vec::with_capacity(texts.len());
        for (index, text) in texts.iter().enumerate() {
            match parse(text) {
                Ok(item) => read.push(item),
                Err(error) => problems.add(ConfigCode::ConfigInvalid, &format!("{}[{index}]", self.path_of(key)), error.to_string()),
            }
        }
        Some(read)
    }

    /// The sub-section of a key; absent gives an empty one.
    pub fn section(&mut self, key: &str, problems: &mut Problems) -> Section {
        let value = self.take(key).unwrap_or(Value::Null);
        Self::new(&self.path_of(key), value, problems)
    }

    /// The named sub-sections of a key, such as `[tables."a.b"]`.
    pub fn sections(&mut self, key: &str, problems: &mut Problems) -> BTreeMap<String, Section> {
        let outer = self.section(key, problems);
        let path = outer.path.clone();
        let inner = outer.fields.into_iter().map(|(name, value)| {
            let section = Self::new(&format!("{path}.\"{name}\""), value, problems);
            (name, section)
        });
        inner.collect()
    }

    /// The list of sub-sections of a key, such as `[[source.formats]]`.
    pub fn section_list(&mut self, key: &str, problems: &mut Problems) -> Vec<Section> {
        let path = self.path_of(key);
        match self.take(key) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(items)) => {
                let sections = items.into_iter().enumerate();
                sections.map(|(index, item)| Self::new(&format!("{path}[{index}]"), item, problems)).collect()
            }
            Some(_) => {
                problems.add(ConfigCode::ConfigInvalid, &path, "expected a list of tables");
                Vec::new()
            }
        }
    }

    /// Ends the reading: every key that was not taken is a problem.
    pub fn finish(self, problems: &mut Problems) {
        for key in self.fields.keys() {
            problems.add(ConfigCode::ConfigInvalid, &self.path_of(key), "unknown key");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_problems_are_told_with_their_paths() {
        let mut problems = Problems::default();
        let mut root = Section::new("", json!({"a": {"n": "x", "typo": 1}, "b": 3, "c": 1}), &mut problems);
        let mut a = root.section("a", &mut problems);
        assert_eq!(a.read::<u32>("n", &mut problems), None);
        a.finish(&mut problems);
        let b = root.section("b", &mut problems);
        b.finish(&mut problems);
        root.finish(&mut problems);
        let paths: Vec<String> = problems.into_vec().into_iter().map(|problem| problem.path).collect();
        assert_eq!(paths, ["a.n", "a.typo", "b", "c"]);
    }
}

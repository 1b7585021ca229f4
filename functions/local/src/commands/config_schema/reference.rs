//! The tables of docs/configuration.md: what keys mean, and their defaults.

use serde_json::Value;

/// A row of a table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    /// Paths of the sections that the table is of, as in [`super::keys::Keys`].
    sections: Vec<String>,
    /// The key.
    pub key: String,
    /// Its default, where that is a value.
    pub default: Option<Value>,
    /// What it means, as Markdown.
    pub meaning: String,
}

impl Entry {
    /// The paths of the key.
    pub(super) fn paths(&self) -> impl Iterator<Item = String> {
        self.sections.iter().map(|section| format!("{section}.{}", self.key))
    }

    pub(super) fn is_of(&self, path: &str) -> bool {
        self.paths().any(|own| own == path)
    }
}

/// The rows of all tables whose first column is `key`, below the heading that names their sections.
pub(super) fn entries(page: &str) -> Vec<Entry> {
    let (mut sections, mut found, mut in_table) = (Vec::new(), Vec::new(), false);
    for line in page.lines() {
        if line.starts_with('#') {
            sections = quoted(line).filter_map(section).collect();
        }
        in_table = line.starts_with("| key |") || (in_table && line.starts_with('|'));
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        if let ([keys, default, meaning], true, false) = (cells.as_slice(), in_table, line.starts_with("| key |")) {
            let of = |key: &str| Entry {
                sections: sections.clone(),
                key: key.to_owned(),
                default: value(default),
                meaning: (*meaning).to_owned(),
            };
            found.extend(quoted(keys).map(of));
        }
    }
    found
}

/// What stands in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The path of a section as a heading writes it: `[tables."namespace.name".columns.<name>]` is `tables.*.columns.*`.
fn section(written: &str) -> Option<String> {
    let (inner, is_list) = match written.strip_prefix("[[") {
        Some(rest) => (rest.strip_suffix("]]")?, true),
        None => (written.strip_prefix('[')?.strip_suffix(']')?, false),
    };
    let inner = inner.replace("\"namespace.name\"", "*").replace("<name>", "*").replace("source.formats.", "source.formats[].");
    Some(if is_list { format!("{inner}[]") } else { inner })
}

/// A default that is a value: in backticks, and nothing else in its cell.
fn value(cell: &str) -> Option<Value> {
    let literal = cell.strip_prefix('`')?.strip_suffix('`').filter(|literal| !literal.contains('`'))?;
    Some(serde_json::from_str(literal).unwrap_or_else(|_| Value::String(literal.to_owned())))
}

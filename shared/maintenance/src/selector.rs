//! Which tables.

use serde::{Deserialize, Serialize};
use sluice_model::TableName;
use wildmatch::WildMatch;

/// Tables by globs over `namespace.table`: `*` for any text, `?` for one character.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selector {
    /// A table is selected by any of these.
    #[serde(default = "everything")]
    pub tables: Vec<String>,
    /// Unless it is named by one of these.
    #[serde(default)]
    pub except: Vec<String>,
}

fn everything() -> Vec<String> {
    vec!["*".to_owned()]
}

impl Default for Selector {
    fn default() -> Self {
        Self { tables: everything(), except: Vec::new() }
    }
}

impl Selector {
    /// Whether the table is selected.
    #[must_use]
    pub fn selects(&self, name: &TableName) -> bool {
        let any = |globs: &[String]| globs.iter().any(|glob| WildMatch::new(glob).matches(name.as_str()));
        any(&self.tables) && !any(&self.except)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_and_exceptions() {
        let selector = Selector { tables: vec!["shop.*".to_owned()], except: vec!["*.tmp_?".to_owned()] };
        let selects = |name: &str| selector.selects(&TableName::parse(name).unwrap());
        assert!(selects("shop.orders") && selects("shop.tmp_12"));
        assert!(!selects("erp.orders") && !selects("shop.tmp_1"));
        assert!(serde_json::from_str::<Selector>(r#"{"table": ["x"]}"#).is_err(), "a typing mistake must not select everything");
        assert_eq!(serde_json::from_str::<Selector>("{}").unwrap(), Selector::default());
    }
}

//! Integrity rules: SQL predicates over the columns of a row. (Parsing stands here; evaluation follows in this file.)

/// An integrity rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    text: String,
}

impl Check {
    /// Parses a rule.
    ///
    /// # Errors
    /// A sentence saying what does not parse.
    pub fn parse(text: &str) -> Result<Self, String> {
        Ok(Self { text: text.to_owned() })
    }

    /// The rule as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Which rows break a rule.
#[derive(Debug)]
pub(crate) struct Verdict;

impl Verdict {
    pub(crate) fn failure(&self, _row: usize) -> Option<String> {
        None
    }
}

impl Check {
    pub(crate) fn evaluate(&self, _columns: &[sluice_model::Column], _rows: &[arrow_array::ArrayRef]) -> Verdict {
        Verdict
    }
}

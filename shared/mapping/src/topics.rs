//! Which topics: names, or globs over them.

use wildmatch::WildMatch;

/// Names of topics, and globs (`*`, `?`) over them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topics {
    patterns: Vec<String>,
}

impl Topics {
    /// These names and globs.
    #[must_use]
    pub const fn new(patterns: Vec<String>) -> Self {
        Self { patterns }
    }

    /// Whether a topic is one of them. Topics of Kafka itself never are, unless they are named.
    #[must_use]
    pub fn matches(&self, topic: &str) -> bool {
        self.patterns.iter().any(|pattern| {
            if is_glob(pattern) { !topic.starts_with("__") && WildMatch::new(pattern).matches(topic) } else { pattern == topic }
        })
    }

    /// As librdkafka takes them: what begins with `^` is a regular expression.
    pub(crate) fn subscription(&self) -> Vec<String> {
        self.patterns.iter().map(|pattern| if is_glob(pattern) { expression(pattern) } else { pattern.clone() }).collect()
    }
}

fn is_glob(pattern: &str) -> bool {
    pattern.contains(['*', '?'])
}

/// A glob as a regular expression: of the characters that a topic's name may have, only the dot means something there.
fn expression(pattern: &str) -> String {
    let body: String = pattern
        .chars()
        .map(|character| match character {
            '*' => ".*".to_owned(),
            '?' => ".".to_owned(),
            '.' => "[.]".to_owned(),
            other => other.to_string(),
        })
        .collect();
    format!("^{body}$")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_become_regular_expressions_and_names_stay() {
        let topics = Topics::new(vec!["erp.orders".to_owned(), "crm.*".to_owned()]);
        assert_eq!(topics.subscription(), ["erp.orders", "^crm[.].*$"]);
        assert!(topics.matches("erp.orders") && topics.matches("crm.x") && !topics.matches("erp.orders2") && !topics.matches("crmx"));
    }
}

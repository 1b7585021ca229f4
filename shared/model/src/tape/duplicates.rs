//! Finding fields that stand twice in one object.

use std::collections::HashSet;

use super::{Node, NodeKind};

impl Node<'_> {
    /// The name of the first field that stands twice in one object, in this value or anything inside it.
    #[must_use]
    pub fn first_duplicate(self) -> Option<String> {
        // The parser has seen that all shapes in here are without a repetition.
        if !self.token().may_repeat() {
            return None;
        }
        let objects = (self.at..self.token().next).map(|at| self.at(at)).filter(|node| node.kind() == NodeKind::Object);
        objects.filter_map(Self::own_duplicate).next()
    }

    fn own_duplicate(self) -> Option<String> {
        let mut seen = HashSet::new();
        self.fields().map(|(name, _)| name).find(|name| !seen.insert(name.clone())).map(Into::into)
    }
}

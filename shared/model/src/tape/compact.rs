//! A value's text without blanks.

use super::node::Children;
use super::{Node, NodeKind};

impl Node<'_> {
    /// Appends the source text of the value without the blanks between its tokens.
    pub fn write_compact(self, out: &mut String) {
        let mut open: Vec<(Children<'_>, char)> = Vec::new();
        let mut next = Some(self);
        loop {
            if let Some(node) = next.take() {
                match node.kind() {
                    NodeKind::Array => open.push((begin(node, '[', out), ']')),
                    NodeKind::Object => open.push((begin(node, '{', out), '}')),
                    NodeKind::Null | NodeKind::Bool | NodeKind::Number | NodeKind::String => out.push_str(node.raw()),
                }
            }
            let Some((children, bracket)) = open.last_mut() else { return };
            match children.next() {
                Some((name, child)) => {
                    // No scalar ends with an opening bracket.
                    if !out.ends_with(['[', '{']) {
                        out.push(',');
                    }
                    if let Some(name) = name {
                        out.push_str(name.quoted());
                        out.push(':');
                    }
                    next = Some(child);
                }
                None => {
                    out.push(*bracket);
                    open.pop();
                }
            }
        }
    }
}

fn begin<'t>(node: Node<'t>, bracket: char, out: &mut String) -> Children<'t> {
    out.push(bracket);
    node.children()
}

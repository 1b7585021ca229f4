//! Finding fields that stand twice in one object.

use std::borrow::Cow;

use super::{Node, NodeKind};

impl<'t> Node<'t> {
    /// The path of the first field that stands twice in one object, in this value or anything inside it.
    #[must_use]
    pub fn first_duplicate(self) -> Option<String> {
        let end = self.token().next as usize;
        (self.at..end).map(|at| self.at(at)).filter(|node| node.kind() == NodeKind::Object).find_map(Self::own_duplicate)
    }

    fn own_duplicate(self) -> Option<String> {
        let mut filter = NameFilter::default();
        let all_differ = self.raw_fields().all(|(name, _)| !name.token().escaped && filter.is_new(name.slice()));
        if all_differ { None } else { self.exact_duplicate() }
    }

    fn exact_duplicate(self) -> Option<String> {
        const FEW: usize = 24;
        let names: Vec<Node<'t>> = self.raw_fields().map(|(name, _)| name).collect();
        if names.len() > FEW || names.iter().any(|name| name.token().escaped) {
            let mut seen = std::collections::HashSet::with_capacity(names.len());
            return names.into_iter().map(Self::string).find(|name| !seen.insert(name.clone())).map(Cow::into_owned);
        }
        let repeats = |index: usize| names[..index].iter().any(|earlier| earlier.slice() == names[index].slice());
        (1..names.len()).find(|index| repeats(*index)).map(|index| names[index].slice().to_owned())
    }
}

/// Tells names apart by a cheap hash: different hashes are different names, equal ones have to be compared.
#[derive(Default)]
struct NameFilter([u64; 16]);

impl NameFilter {
    /// Whether no name before had the same hash.
    fn is_new(&mut self, name: &str) -> bool {
        let bytes = name.as_bytes();
        let hash = match (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
            (Some(first), Some(last)) => u64::from_le_bytes(*first) ^ u64::from_le_bytes(*last).rotate_left(23),
            _ => bytes.iter().fold(0, |hash, byte| hash << 8 | u64::from(*byte)),
        };
        let hash = hash.wrapping_add(bytes.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
        let (word, bit) = ((hash >> 6) as usize, 1_u64 << (hash & 63));
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }
}

//! Numbers that look random and are the same in every run and with every library version.

/// SplitMix64.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `low` up to, not including, `high`.
    pub(crate) fn between(&mut self, low: i64, high: i64) -> i64 {
        let width = high.abs_diff(low).max(1);
        low.wrapping_add((self.next() % width).cast_signed())
    }

    /// From 0 up to, not including, 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    pub(crate) fn one_of<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        let index = self.next() % texts.len().max(1) as u64;
        texts.get(index as usize).copied().unwrap_or_default()
    }
}

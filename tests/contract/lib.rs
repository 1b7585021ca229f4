//! The contract suite of catalogs; see `tests/`.

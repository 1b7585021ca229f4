//! The product's binaries, built as a user builds them, once for all tests.

use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

/// The binary of the operator.
pub static SLUICE: LazyLock<PathBuf> = LazyLock::new(|| built("sluice-local", "sluice"));
/// The Lambda.
pub static INGEST: LazyLock<PathBuf> = LazyLock::new(|| built("sluice-ingest", "ingest"));

/// The Lambda that tries refused records again.
pub static REDRIVE: LazyLock<PathBuf> = LazyLock::new(|| built("sluice-redrive", "redrive"));
/// The Lambdas of maintenance.
pub static COMPACT: LazyLock<PathBuf> = LazyLock::new(|| built("sluice-compact", "compact"));
pub static REWRITE_MANIFESTS: LazyLock<PathBuf> = LazyLock::new(|| built("sluice-rewrite-manifests", "rewrite-manifests"));
pub static EXPIRE_SNAPSHOTS: LazyLock<PathBuf> = LazyLock::new(|| built("sluice-expire-snapshots", "expire-snapshots"));
pub static REMOVE_ORPHANS: LazyLock<PathBuf> = LazyLock::new(|| built("sluice-remove-orphans", "remove-orphans"));

/// The path of a binary of a package, after building it.
fn built(package: &str, binary: &str) -> PathBuf {
    let folder = std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().to_owned();
    let path = folder.join(binary);
    let mut cargo = Command::new(env!("CARGO"));
    // What cargo tells a test of its package is news to build scripts that look at it (ring's does): iceberg and all else on top of it would be compiled anew.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")) {
            cargo.env_remove(name);
        }
    }
    let status = cargo.args(["build", "--quiet", "--package", package, "--bin", binary]).status().unwrap();
    assert!(status.success() && path.exists(), "{binary} cannot be built at {}", path.display());
    path
}

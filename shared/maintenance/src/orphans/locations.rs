//! Comparing locations. A file is an orphan only if no spelling of its location is needed (rule O6).

use sluice_table::TableVersion;
use sluice_table::expire::normalised;

use crate::lease::FOLDER;

/// Where a table's own files may be (rule O5).
const PATHS: [&str; 4] = ["write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path"];

/// What is left of a location when everything that storages spell differently is taken away: scheme and authority, doubled and trailing slashes, percent-encoding, case. Two locations that
/// agree only in this may be one object or two: such a file is never deleted.
#[must_use]
pub fn lossy(location: &str) -> String {
    let rest = location.split_once("://").map_or(location, |(_, rest)| rest.split_once('/').map_or("", |(_, path)| path));
    let mut decoded: Vec<u8> = Vec::with_capacity(rest.len());
    let bytes = rest.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let digits = (bytes[at] == b'%').then(|| rest.get(at + 1..at + 3)).flatten();
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(if bytes[at] == b'+' { b' ' } else { bytes[at] });
                at += 1;
            }
        }
    }
    let text = String::from_utf8_lossy(&decoded).to_lowercase();
    text.split('/').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
}

/// The folders of a table, each with a slash at its end, none inside another.
pub(super) fn roots(version: &TableVersion) -> Vec<String> {
    let metadata = &version.metadata;
    let properties = PATHS.iter().filter_map(|key| metadata.properties().get(*key)).map(String::as_str);
    let mut roots: Vec<String> = Vec::new();
    for root in std::iter::once(metadata.location()).chain(properties) {
        let root = format!("{}/", root.trim_end_matches('/'));
        if !roots.iter().any(|held| normalised(&root).starts_with(&normalised(held))) {
            roots.retain(|held| !normalised(held).starts_with(&normalised(&root)));
            roots.push(root);
        }
    }
    roots
}

/// Whether one folder is the other or inside it, in any spelling.
pub(super) fn overlap(a: &str, b: &str) -> bool {
    // Of the root of a bucket nothing is left that could be compared; all of its bucket is inside it.
    if lossy(a).is_empty() || lossy(b).is_empty() {
        return authority(a).eq_ignore_ascii_case(authority(b));
    }
    let (a, b) = (format!("{}/", lossy(a)), format!("{}/", lossy(b)));
    a.starts_with(&b) || b.starts_with(&a)
}

/// The bucket or host of a location, empty when it has none.
fn authority(location: &str) -> &str {
    location.split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or_default())
}

/// Whether a file is hidden below its root: a name that begins with `_` or `.`, as of temporary files, checkpoints and our own (rule O7). Folders of partitions are not hidden by the name of their
/// column.
pub(super) fn is_hidden(root: &str, location: &str) -> bool {
    let below = location.strip_prefix(root).unwrap_or(location);
    below.split('/').any(|part| part == FOLDER || (part.starts_with(['_', '.']) && !part.contains('=')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o6_spellings_of_one_object_agree_at_the_latest_when_everything_is_taken_away() {
        let one = lossy("s3://lake/t/data/region=a%2Fb/x.parquet");
        for other in [
            "s3a://lake/t/data/region=a%2Fb/x.parquet",
            "s3n://lake/t//data/region=a%2fb/x.parquet",
            "https://minio:9000/t/data/region=a/b/x.parquet",
            "hdfs://nn2:8020/T/data/region=a%2Fb/x.parquet",
        ] {
            assert_eq!(lossy(other), one, "{other}");
        }
        assert_ne!(lossy("s3://lake/t/data/y.parquet"), one);
        assert_eq!(lossy("/t/a b"), lossy("file:///t/a%20b").trim_start_matches('/'));
        assert_eq!(lossy("s3://b/100%"), "100%");
    }

    #[test]
    fn o7_hidden_names_are_passed_by_and_partition_folders_are_not() {
        for hidden in ["_temporary/x", "data/.x.crc", "_sluice/lease.json", "data/_SUCCESS", "a/.hidden/b"] {
            assert!(is_hidden("s3://b/t/", &format!("s3://b/t/{hidden}")), "{hidden}");
        }
        for shown in ["data/_day=2026-01-01/x.parquet", "data/x.parquet", "metadata/v1.metadata.json"] {
            assert!(!is_hidden("s3://b/t/", &format!("s3://b/t/{shown}")), "{shown}");
        }
    }

    #[test]
    fn o4_folders_overlap_in_any_spelling() {
        assert!(overlap("s3://b/t", "s3a://b/t/"));
        assert!(overlap("s3://b/t", "s3://b/t/nested"));
        assert!(!overlap("s3://b/t", "s3://b/t2"));
        assert!(overlap("s3://b", "s3a://B/t/") && overlap("s3://b/t", "s3://b/"), "a whole bucket");
        assert!(!overlap("s3://c", "s3://b/t"));
    }
}

//! `s3://bucket/key`, also as `s3a` and `s3n`.

use crate::StorageError;

/// A bucket and a key. The key is raw: nothing is decoded, so `a%2Fb` and `a/b` stay two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct S3Location<'a> {
    /// The scheme with `://`.
    pub(crate) scheme: &'a str,
    pub(crate) bucket: &'a str,
    pub(crate) key: &'a str,
}

impl<'a> S3Location<'a> {
    pub(crate) fn parse(location: &'a str) -> Result<Self, StorageError> {
        let rest = ["s3://", "s3a://", "s3n://"].into_iter().find_map(|scheme| location.strip_prefix(scheme));
        let parts = rest.and_then(|rest| rest.split_once('/')).filter(|(bucket, _)| !bucket.is_empty());
        match (rest, parts) {
            (Some(rest), Some((bucket, key))) => Ok(Self { scheme: &location[..location.len() - rest.len()], bucket, key }),
            (_, _) => Err(StorageError::fatal(format!("`{location}` is no location in S3; one looks like s3://bucket/key"))),
        }
    }

    /// The location of another key of the bucket, in the same spelling.
    pub(crate) fn of(&self, key: &str) -> String {
        format!("{}{}/{key}", self.scheme, self.bucket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_raw() {
        let location = S3Location::parse("s3a://lake/a%2Fb//c d").unwrap();
        assert_eq!(location, S3Location { scheme: "s3a://", bucket: "lake", key: "a%2Fb//c d" });
        assert_eq!(location.of("x"), "s3a://lake/x");
        for wrong in ["s3://lake", "s3:///key", "file:///x", "lake/key"] {
            assert!(S3Location::parse(wrong).is_err(), "{wrong}");
        }
    }
}

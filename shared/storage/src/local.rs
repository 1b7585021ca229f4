//! Objects on the local disk.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher as _};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use async_trait::async_trait;
use bytes::Bytes;
use sluice_model::Class;

use crate::object_store::check_deletes;
use crate::{Condition, ListPage, NotDeleted, Object, ObjectEntry, ObjectStore, PutOutcome, StorageError, Token};

/// Files of one page.
const PAGE: usize = 1_000;

/// Files as objects: `file:///path` or `/path`. A write appears whole, by renaming; writers of one folder take turns by a lock on the folder that the
/// operating system drops with its process, so conditions hold between processes too (not over NFS without locks).
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalObjects;

fn path_of(location: &str) -> Result<&Path, StorageError> {
    let path = location.strip_prefix("file://").or_else(|| location.strip_prefix("file:")).unwrap_or(location);
    if path.starts_with('/') { Ok(Path::new(path)) } else { Err(StorageError::fatal(format!("`{location}` is no absolute path"))) }
}

fn failed(what: &str, location: &str) -> impl FnOnce(io::Error) -> StorageError {
    let what = format!("{what} {location}");
    move |error| {
        let class = match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::NotADirectory | io::ErrorKind::ReadOnlyFilesystem => Class::Fatal,
            _ => Class::Transient,
        };
        StorageError { class, what: format!("{what}: {error}"), source: Some(Box::new(error)) }
    }
}

/// `None` for what is not there.
fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The same content has the same etag, as in S3.
fn etag(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    format!("{:x}-{:016x}", bytes.len(), hasher.finish())
}

/// Holds a folder's lock while a file in it is compared and replaced: for as long as one write takes.
fn locked<T>(folder: &Path, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let lock = File::open(folder)?;
    lock.lock()?;
    let done = act();
    lock.unlock()?;
    done
}

fn replace(path: &Path, folder: &Path, bytes: &[u8]) -> io::Result<()> {
    let readable = fs::Permissions::from_mode(0o644);
    let mut file = tempfile::Builder::new().prefix(".writing-").permissions(readable).tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_data()?;
    file.persist(path).map(|_| ()).map_err(|error| error.error)
}

fn put(path: &Path, bytes: &[u8], condition: &Condition) -> io::Result<PutOutcome> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)?;
    locked(folder, || {
        let holds = match condition {
            Condition::Always => true,
            Condition::IfAbsent => !fs::exists(path)?,
            Condition::IfMatch(wanted) => found(fs::read(path))?.is_some_and(|there| etag(&there) == *wanted),
        };
        if !holds {
            return Ok(PutOutcome::Refused);
        }
        replace(path, folder, bytes)?;
        Ok(PutOutcome::Written(etag(bytes)))
    })
}

/// The files below `folder` whose location starts with `prefix`, with their sizes and times. Links are not followed: they may lead out of it.
fn walk(folder: &Path, scheme: &str, prefix: &str) -> io::Result<BTreeMap<String, fs::Metadata>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Some(entries) = found(fs::read_dir(&folder))? else { continue };
        for entry in entries {
            let entry = entry?;
            // A file may go while we look.
            let Some(metadata) = found(entry.metadata())? else { continue };
            // A name that is no text has no location; nobody can have written a table with it.
            let Some(location) = entry.path().to_str().map(|path| format!("{scheme}{path}")) else { continue };
            if metadata.is_dir() && (prefix.starts_with(&location) || location.starts_with(prefix)) {
                folders.push(entry.path());
            } else if metadata.is_file() && location.starts_with(prefix) {
                files.insert(location, metadata);
            }
        }
    }
    Ok(files)
}

fn entry(location: String, metadata: &fs::Metadata) -> ObjectEntry {
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let last_modified_ms = modified.and_then(|since| i64::try_from(since.as_millis()).ok());
    ObjectEntry { location, size: metadata.len(), last_modified_ms }
}

#[async_trait]
impl ObjectStore for LocalObjects {
    async fn list(&self, prefix: &str, from: Option<&Token>) -> Result<ListPage, StorageError> {
        let path = path_of(prefix)?;
        let scheme = &prefix[..prefix.len() - path.as_os_str().len()];
        let folder: PathBuf = if prefix.ends_with('/') { path.to_owned() } else { path.parent().unwrap_or(path).to_owned() };
        let files = walk(&folder, scheme, prefix).map_err(failed("listing", prefix))?;
        let start = from.map_or(String::new(), |token| token.0.clone());
        let mut rest = files.range(start..);
        let objects = rest.by_ref().take(PAGE).map(|(location, metadata)| entry(location.clone(), metadata)).collect();
        Ok(ListPage { objects, next: rest.next().map(|(location, _)| Token(location.clone())) })
    }

    async fn get(&self, location: &str) -> Result<Option<Object>, StorageError> {
        let bytes = found(fs::read(path_of(location)?)).map_err(failed("reading", location))?;
        Ok(bytes.map(|bytes| Object { etag: etag(&bytes), bytes: bytes.into() }))
    }

    async fn put(&self, location: &str, bytes: Bytes, condition: Condition) -> Result<PutOutcome, StorageError> {
        put(path_of(location)?, &bytes, &condition).map_err(failed("writing", location))
    }

    async fn delete(&self, locations: &[String]) -> Result<Vec<NotDeleted>, StorageError> {
        check_deletes(locations)?;
        let mut left = Vec::new();
        for location in locations {
            let path = path_of(location)?;
            let folder = path.parent().unwrap_or(Path::new("/"));
            let done = found(locked(folder, || found(fs::remove_file(path))));
            if let Err(error) = done.map_err(failed("deleting", location)) {
                left.push(NotDeleted { location: location.clone(), error });
            }
        }
        Ok(left)
    }
}

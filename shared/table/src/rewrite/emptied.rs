//! Manifests whose live files all leave in one commit: their entries are gathered, so that hundreds of manifests of a streaming writer become few instead of being written again one by one.

use iceberg::spec::{ManifestContentType, ManifestFile, SchemaRef};

use crate::manifest_copy::{Existing, existing};
use crate::snapshot_producer::{ManifestPlace, Tally, manifest_writer};
use crate::{TableError, TableVersion};

/// Entries are gathered from manifests of so many bytes together.
const GATHERED_BYTES: i64 = 8 << 20;

/// Entries of files that leave.
pub(super) struct Emptied<'a> {
    version: &'a TableVersion,
    snapshot_id: i64,
    /// How the paths of the manifests begin.
    name: &'a str,
    /// Those of one spec, content and schema together.
    open: Vec<Gathered>,
    written: Vec<ManifestFile>,
}

struct Gathered {
    spec_id: i32,
    content: ManifestContentType,
    schema: SchemaRef,
    files: Vec<Existing>,
    bytes: i64,
}

impl<'a> Emptied<'a> {
    pub(super) const fn new(version: &'a TableVersion, snapshot_id: i64, name: &'a str) -> Self {
        Self { version, snapshot_id, name, open: Vec::new(), written: Vec::new() }
    }

    /// Takes a manifest of which nothing stays.
    pub(super) async fn add(&mut self, manifest: &ManifestFile, tally: &mut Tally) -> Result<(), TableError> {
        let path = &manifest.manifest_path;
        let loaded = manifest.load_manifest(&self.version.file_io).await.map_err(TableError::iceberg(format!("reading {path}")))?;
        let files = existing(manifest, &loaded)?;
        files.iter().for_each(|file| tally.remove(manifest.partition_spec_id, &file.file));
        // The manifest's own schema: a partition's source column may be dropped from the current one.
        let schema = loaded.metadata().schema().clone();
        let (spec_id, content) = (manifest.partition_spec_id, manifest.content);
        let fits = |open: &Gathered| (open.spec_id, open.content) == (spec_id, content) && open.schema == schema;
        let at = match self.open.iter().position(fits) {
            Some(at) => at,
            None => {
                self.open.push(Gathered { spec_id, content, schema, files: Vec::new(), bytes: 0 });
                self.open.len() - 1
            }
        };
        self.open[at].files.extend(files);
        self.open[at].bytes += manifest.manifest_length;
        if self.open[at].bytes >= GATHERED_BYTES {
            let full = self.open.swap_remove(at);
            self.write(full).await?;
        }
        Ok(())
    }

    /// The manifests, in which all files are deleted.
    pub(super) async fn finish(mut self) -> Result<Vec<ManifestFile>, TableError> {
        for gathered in std::mem::take(&mut self.open) {
            self.write(gathered).await?;
        }
        Ok(self.written)
    }

    async fn write(&mut self, gathered: Gathered) -> Result<(), TableError> {
        let path = format!("{}-e{}.avro", self.name, self.written.len());
        let wrong = || TableError::iceberg(format!("writing {path}"));
        let Gathered { spec_id, content, schema, files, .. } = gathered;
        let place = ManifestPlace { path: &path, spec_id, content, snapshot_id: self.snapshot_id };
        let mut writer = manifest_writer((&self.version.file_io, &self.version.metadata), schema, &place)?;
        for Existing { file, number, file_number, .. } in files {
            writer.add_delete_file(file, number, file_number).map_err(wrong())?;
        }
        self.written.push(writer.write_manifest_file().await.map_err(wrong())?);
        Ok(())
    }
}

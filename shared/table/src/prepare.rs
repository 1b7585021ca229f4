//! Writing a delta's files.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use iceberg::io::FileIO;
use iceberg::spec::{DataContentType, DataFileBuilder, DataFileFormat, NestedFieldRef, PartitionSpec, Schema, SortOrder, TableMetadata};
use sluice_model::IdSource;
use uuid::Uuid;

use crate::arrow::required_field_id;
use crate::delta::SpecFile;
use crate::manifests::Base;
use crate::metrics::{Metrics, MetricsLimit};
use crate::parquet_file::{EncodedFile, Encoder, FileRows};
use crate::partition::{PartitionRows, Partitioning};
use crate::reader::{project_batch, require_known};
use crate::scope::DeleteScope;
use crate::{DeltaBase, PreparedDelta, RowDelta, TableError, TableVersion, Truncate};

const DATA_PATH: &str = "write.data.path";

/// How files are written.
pub struct WriteOptions<'a> {
    /// Names of files.
    pub ids: &'a dyn IdSource,
    /// A file is finished when it has about so many bytes.
    pub target_file_bytes: usize,
    /// So many files are encoded and stored at a time; their bytes are held in memory.
    pub max_open_files: usize,
}

/// Writes the delta's data and delete files. The table does not change; files of a delta that is never committed are orphans.
///
/// # Errors
/// [`TableError`]: of class fatal when the delta does not fit the version or its schema.
pub async fn prepare(version: &TableVersion, mut delta: RowDelta, options: &WriteOptions<'_>) -> Result<PreparedDelta, TableError> {
    check_base(version, &delta)?;
    let metadata = &version.metadata;
    let evolved = delta.evolved.as_ref().map(|schema| crate::schema::evolve(metadata, schema)).transpose()?;
    let schema = evolved.as_ref().unwrap_or_else(|| metadata.current_schema());
    let mut files = Vec::new();
    if let Some(rows) = delta.rows.take().filter(|rows| rows.num_rows() > 0) {
        files = write_files(&Job::data(version, schema)?, &rows, options).await?;
    }
    let mut base = Base::new(version.clone());
    let mut scope = None;
    if let Some(keys) = delta.delete_keys.take().filter(|keys| keys.num_rows() > 0 && delta.truncate == Truncate::Keep) {
        let ids = keys.schema_ref().fields().iter().map(|field| required_field_id(field)).collect::<Result<Vec<i32>, _>>()?;
        let chosen = DeleteScope::choose(&mut base, &ids).await?;
        files.extend(write_files(&Job::deletes(version, (schema, ids), chosen)?, &keys, options).await?);
        scope = Some(chosen);
    }
    let data_spec_id = metadata.default_partition_spec_id();
    Ok(PreparedDelta { base, delta, schema: evolved, data_spec_id, scope, files })
}

fn check_base(version: &TableVersion, delta: &RowDelta) -> Result<(), TableError> {
    crate::manifests::check_format(&version.metadata)?;
    let now = DeltaBase::of(version);
    let fits = now.table_uuid == delta.base.table_uuid && now.schema_id == delta.base.schema_id;
    if fits { Ok(()) } else { Err(TableError::Invalid("the delta was made for another table or schema".to_owned())) }
}

/// One kind of files to write.
struct Job {
    file_io: FileIO,
    folder: String,
    schema: Schema,
    encoder: Encoder,
    partitioning: Partitioning,
    content: Content,
    limit: MetricsLimit,
}

enum Content {
    Data(SortOrder),
    Deletes(Vec<i32>),
}

impl Content {
    const fn rows(&self) -> FileRows {
        match self {
            Self::Data(_) => FileRows::Rows,
            Self::Deletes(_) => FileRows::SortedKeys,
        }
    }
}

impl Job {
    fn data(version: &TableVersion, schema: &Schema) -> Result<Self, TableError> {
        let metadata = &version.metadata;
        let content = Content::Data(metadata.default_sort_order().as_ref().clone());
        Self::new(version, schema.clone(), (metadata.default_partition_spec(), content))
    }

    fn deletes(version: &TableVersion, (schema, ids): (&Schema, Vec<i32>), scope: DeleteScope) -> Result<Self, TableError> {
        let metadata = &version.metadata;
        let unpartitioned = PartitionSpec::unpartition_spec().with_spec_id(scope.spec_id());
        let spec = metadata.partition_spec_by_id(scope.spec_id()).map_or(&unpartitioned, AsRef::as_ref);
        let schema = key_schema(schema, &ids)?;
        let mut job = Self::new(version, schema, (spec, Content::Deletes(ids)))?;
        job.limit = MetricsLimit(usize::MAX);
        Ok(job)
    }

    fn new(version: &TableVersion, schema: Schema, (spec, content): (&PartitionSpec, Content)) -> Result<Self, TableError> {
        let properties = version.metadata.properties();
        Ok(Self {
            file_io: version.file_io.clone(),
            folder: data_folder(&version.metadata),
            encoder: Encoder::new(&schema, properties, content.rows())?,
            partitioning: Partitioning::new(spec, &schema)?,
            schema,
            content,
            limit: MetricsLimit::of(properties),
        })
    }

    const fn arrow(&self) -> &SchemaRef {
        &self.encoder.arrow
    }

    fn sorted(&self, rows: &RecordBatch) -> Result<RecordBatch, TableError> {
        match &self.content {
            Content::Data(order) => crate::sorting::by_order(rows, order),
            Content::Deletes(_) => crate::sorting::by_all_columns(rows),
        }
    }

    fn path(&self, partition: &str, id: u128) -> String {
        let suffix = match &self.content {
            Content::Data(_) => "",
            Content::Deletes(_) => "-deletes",
        };
        let separator = if partition.is_empty() { "" } else { "/" };
        format!("{}/{partition}{separator}{}{suffix}.parquet", self.folder, Uuid::from_u128(id))
    }

    fn describe(&self, file: &EncodedFile, partition: &PartitionRows, path: &str) -> Result<SpecFile, TableError> {
        let spec_id = self.partitioning.spec.spec_id();
        let mut builder = DataFileBuilder::default();
        builder.file_path(path.to_owned()).file_format(DataFileFormat::Parquet);
        builder.partition(partition.values.clone()).partition_spec_id(spec_id);
        match &self.content {
            Content::Data(order) => {
                builder.content(DataContentType::Data);
                if let Some(id) = i32::try_from(order.order_id).ok().filter(|_| !order.is_unsorted()) {
                    builder.sort_order_id(id);
                }
            }
            Content::Deletes(ids) => {
                builder.content(DataContentType::EqualityDeletes).equality_ids(Some(ids.clone()));
            }
        }
        file.fill(&mut builder);
        Metrics::measure(&file.rows, &self.schema, self.limit)?.fill(&mut builder);
        let file = builder.build().map_err(|error| TableError::Invalid(format!("describing {path}: {error}")))?;
        Ok(SpecFile { spec_id, file })
    }
}

/// The key columns alone, in the order of the keys. They are no identifier fields here: a key may be null.
fn key_schema(schema: &Schema, ids: &[i32]) -> Result<Schema, TableError> {
    let missing = |id| TableError::Invalid(format!("the table has no key column with the field id {id}"));
    let fields = ids.iter().map(|id| schema.as_struct().field_by_id(*id).cloned().ok_or_else(|| missing(*id)));
    let fields = fields.collect::<Result<Vec<NestedFieldRef>, TableError>>()?;
    Schema::builder().with_fields(fields).build().map_err(TableError::iceberg("the schema of a delete file"))
}

pub(crate) fn data_folder(metadata: &TableMetadata) -> String {
    let own = metadata.properties().get(DATA_PATH).map(|path| path.trim_end_matches('/').to_owned());
    own.unwrap_or_else(|| format!("{}/data", metadata.location()))
}

async fn write_files(job: &Job, rows: &RecordBatch, options: &WriteOptions<'_>) -> Result<Vec<SpecFile>, TableError> {
    require_known(rows.schema_ref().fields(), job.arrow().fields())?;
    let rows = project_batch(rows, job.arrow())?;
    let partitions = job.partitioning.split(&rows)?;
    let writes = partitions.iter().map(|partition| write_partition(job, partition, options).boxed());
    let files: Vec<Vec<SpecFile>> = stream::iter(writes.collect::<Vec<_>>()).buffered(options.max_open_files.max(1)).try_collect().await?;
    Ok(files.into_iter().flatten().collect())
}

async fn write_partition(job: &Job, partition: &PartitionRows, options: &WriteOptions<'_>) -> Result<Vec<SpecFile>, TableError> {
    let sorted = job.sorted(&partition.rows)?;
    let mut files = Vec::new();
    for file in job.encoder.encode(&sorted, options.target_file_bytes)? {
        let path = job.path(&partition.path, options.ids.next_u128());
        files.push(job.describe(&file, partition, &path)?);
        let output = job.file_io.new_output(&path).map_err(TableError::iceberg(format!("writing {path}")))?;
        output.write(file.bytes).await.map_err(TableError::iceberg(format!("writing {path}")))?;
    }
    Ok(files)
}

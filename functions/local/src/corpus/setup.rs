//! The tables before the first invocation: created, and their rows written with plain appends.

use arrow_array::RecordBatch;
use serde_json::{Map, Value};
use sluice_codec::Limits;
use sluice_ingest::Ingest;
use sluice_model::{
    ChangeEvent, Column, ColumnType, Image, Operation, RouteFields, TableName, TableSchema, Tape, TransformedColumn, UnchangedMarker,
    ValueHints,
};
use sluice_pipeline::settings::{TableSettings, WriteMode};
use sluice_pipeline::type_text::parse_column_type;
use sluice_pipeline::{NameCase, TableContext, convert, fold};
use sluice_table::{
    CommitContext, RowDelta, TableCreation, TableOperations, WriteOptions, commit_delta, prepare, schema, set_partitioning,
};

use super::case::CaseTable;

/// The tools that setting up needs.
pub(crate) struct Tools<'t> {
    /// The function whose catalog is filled.
    pub ingest: &'t Ingest,
    /// How files are written.
    pub options: WriteOptions<'t>,
    /// How commits are made.
    pub context: CommitContext<'t>,
}

/// Creates a table and writes its rows.
///
/// # Errors
/// A sentence when the case's table cannot be made.
pub(crate) async fn create(tools: &Tools<'_>, table: &CaseTable) -> Result<(), String> {
    let name = TableName::parse(&table.name).ok_or_else(|| format!("`{}` is no table name", table.name))?;
    let first = table.spec_history.first().map_or(&table.partition_spec, |step| &step.partition_spec);
    let creation = TableCreation {
        partition_by: transforms(first)?,
        properties: table.properties.clone(),
        format_version: table.format_version,
        ..TableCreation::of(schema_of(table)?)
    };
    tools.ingest.catalog.create(&name, &creation).await.map_err(|error| error.to_string())?;
    let operations = tools.ingest.catalog.load(&name).await.map_err(|error| error.to_string())?;
    let operations = operations.ok_or("the table was created and is not there")?;
    for step in &table.spec_history {
        partition(tools, operations.as_ref(), &step.partition_spec).await?;
        append(tools, operations.as_ref(), &step.rows).await?;
    }
    partition(tools, operations.as_ref(), &table.partition_spec).await?;
    append(tools, operations.as_ref(), &table.rows).await
}

fn transforms(texts: &[String]) -> Result<Vec<TransformedColumn>, String> {
    texts.iter().map(|text| TransformedColumn::parse(text).map_err(|error| error.to_string())).collect()
}

async fn partition(tools: &Tools<'_>, operations: &dyn TableOperations, spec: &[String]) -> Result<(), String> {
    set_partitioning(operations, &transforms(spec)?, &tools.context).await.map_err(|error| error.to_string())
}

fn schema_of(table: &CaseTable) -> Result<TableSchema, String> {
    let mut ids = Ids(0);
    let mut columns = Vec::new();
    for column in &table.columns {
        let id = ids.next();
        let kind = ids.number(parse_column_type(&column.kind)?);
        columns.push(Column { id, name: column.name.clone(), required: column.required, kind, doc: column.doc.clone() });
    }
    let identifiers = columns.iter().filter(|column| table.identifier_fields.contains(&column.name)).map(|column| column.id).collect();
    Ok(TableSchema { schema_id: -1, columns, identifier_ids: identifiers, last_column_id: ids.0 })
}

/// Gives out field ids.
struct Ids(i32);

impl Ids {
    const fn next(&mut self) -> i32 {
        self.0 += 1;
        self.0
    }

    fn number(&mut self, kind: ColumnType) -> ColumnType {
        match kind {
            ColumnType::Struct(fields) => ColumnType::Struct(fields.into_iter().map(|field| self.column(field)).collect()),
            ColumnType::List(element) => ColumnType::List(Box::new(self.column(*element))),
            ColumnType::Map(key, value) => {
                let key = self.column(*key);
                ColumnType::Map(Box::new(key), Box::new(self.column(*value)))
            }
            primitive => primitive,
        }
    }

    fn column(&mut self, column: Column) -> Column {
        let id = self.next();
        Column { id, kind: self.number(column.kind), ..column }
    }
}

async fn append(tools: &Tools<'_>, operations: &dyn TableOperations, rows: &[Map<String, Value>]) -> Result<(), String> {
    if rows.is_empty() {
        return Ok(());
    }
    let version = operations.refresh().await.map_err(|error| error.to_string())?;
    let schema = schema::to_model(&version.metadata).map_err(|error| error.to_string())?;
    let delta = RowDelta { rows: Some(batch(rows, &schema)?), ..RowDelta::on(&version) };
    let prepared = prepare(&version, delta, &tools.options).await.map_err(|error| error.to_string())?;
    commit_delta(operations, prepared, &tools.context).await.map_err(|error| error.to_string())?;
    Ok(())
}

/// The rows as columns, read from the corpus' spelling of values.
fn batch(rows: &[Map<String, Value>], schema: &TableSchema) -> Result<RecordBatch, String> {
    let texts: Vec<String> = rows.iter().map(|row| row_text(row, schema)).collect();
    let limits = Limits::default();
    let tapes: Result<Vec<Tape<'_>>, _> = texts.iter().map(|text| Tape::parse(text, limits.max_depth)).collect();
    let tapes = tapes.map_err(|error| error.to_string())?;
    let events: Vec<ChangeEvent<'_>> = tapes.iter().map(event).collect();
    let settings = TableSettings { mode: WriteMode::Append, ..TableSettings::default() };
    let context = TableContext { schema: Some(schema), settings: &settings, case: NameCase::Preserve, ddl_columns: &[], refused: &[] };
    let events: Vec<&ChangeEvent<'_>> = events.iter().collect();
    let converted = convert(&events, &context).map_err(|error| error.to_string())?;
    match converted.rejections.first() {
        Some((row, rejection)) => Err(format!("row {row} of the case: {} {}", rejection.code, rejection.detail)),
        None => Ok(fold(&converted, None).map_err(|error| error.to_string())?.rows),
    }
}

fn event<'t>(tape: &'t Tape<'_>) -> ChangeEvent<'t> {
    ChangeEvent {
        operation: Operation::Insert,
        route: RouteFields::default(),
        before: None,
        after: Some(Image { object: tape.root(), declared: None, unchanged: UnchangedMarker::Never, own_prefix: None }),
        key: None,
        event_time: None,
        version: None,
        key_columns: Vec::new(),
        hints: ValueHints::default(),
    }
}

fn row_text(row: &Map<String, Value>, schema: &TableSchema) -> String {
    let fields = row.iter().map(|(name, value)| {
        let kind = schema.column(name).map(|column| &column.kind);
        (name.clone(), kind.map_or_else(|| value.clone(), |kind| plain(value, kind)))
    });
    Value::Object(fields.collect()).to_string()
}

/// A value in the spelling that records have: bytes as base64 text, maps as objects.
fn plain(value: &Value, kind: &ColumnType) -> Value {
    match (value, kind) {
        (Value::Object(_), ColumnType::Binary | ColumnType::Fixed(_)) => value.get("base64").cloned().unwrap_or(Value::Null),
        (Value::Array(pairs), ColumnType::Map(_, inner)) => {
            let entries = pairs.iter().filter_map(|pair| Some((pair.get(0)?.as_str()?.to_owned(), plain(pair.get(1)?, &inner.kind))));
            Value::Object(entries.collect())
        }
        (Value::Array(elements), ColumnType::List(inner)) => {
            Value::Array(elements.iter().map(|element| plain(element, &inner.kind)).collect())
        }
        (Value::Object(fields), ColumnType::Struct(columns)) => {
            let typed = |(name, field): (&String, &Value)| {
                let column = columns.iter().find(|column| column.name == *name);
                (name.clone(), column.map_or_else(|| field.clone(), |column| plain(field, &column.kind)))
            };
            Value::Object(fields.iter().map(typed).collect())
        }
        (other, _) => other.clone(),
    }
}

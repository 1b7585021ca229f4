//! Builders for the tests of this crate.

use arrow_array::RecordBatch;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use sluice_model::{
    ChangeEvent, Column, DeclaredType, Image, Operation, Rejection, RouteFields, TableSchema, Tape, UnchangedMarker, ValueHints,
};

use crate::settings::{TableOverrides, TableSettings};
use crate::type_text::parse_column_type;
use crate::{Converted, Folded, NameCase, Outcome, TableContext, convert, fold};

/// An image of a JSON object; its tape lives as long as the test process.
pub(crate) fn image(json: &str) -> Image<'static> {
    let text: &'static str = Box::leak(json.to_owned().into_boxed_str());
    let tape: &'static Tape<'static> = Box::leak(Box::new(Tape::parse(text, 64).unwrap()));
    Image { object: tape.root(), declared: None, unchanged: UnchangedMarker::Never, own_prefix: None }
}

pub(crate) fn declared(json: &str, kind: DeclaredType) -> Image<'static> {
    Image { declared: Some(Box::leak(Box::new(kind))), ..image(json) }
}

pub(crate) fn event(operation: Operation) -> ChangeEvent<'static> {
    ChangeEvent {
        operation,
        route: RouteFields::default(),
        before: None,
        after: None,
        key: None,
        event_time: None,
        version: None,
        key_columns: Vec::new(),
        hints: ValueHints::default(),
    }
}

pub(crate) fn insert(json: &str) -> ChangeEvent<'static> {
    ChangeEvent { after: Some(image(json)), ..event(Operation::Insert) }
}

pub(crate) fn update(before: &str, after: &str) -> ChangeEvent<'static> {
    ChangeEvent { before: Some(image(before)), after: Some(image(after)), ..event(Operation::Update) }
}

pub(crate) fn delete(before: &str) -> ChangeEvent<'static> {
    ChangeEvent { before: Some(image(before)), ..event(Operation::Delete) }
}

/// An update with Debezium's markers.
pub(crate) fn marked(json: &str) -> ChangeEvent<'static> {
    let image = Image { unchanged: UnchangedMarker::DebeziumPlaceholder, ..image(json) };
    ChangeEvent { after: Some(image), ..event(Operation::Update) }
}

/// A schema as text: `id:int! v:string`, types without blanks, the first column the key when `key` says so.
pub(crate) fn schema(text: &str, keys: &[&str]) -> TableSchema {
    let mut last_column_id = 0;
    let mut columns = Vec::new();
    for part in text.split_whitespace() {
        let (name, kind) = part.split_once(':').unwrap();
        let required = kind.ends_with('!');
        let kind = parse_column_type(&kind.trim_end_matches('!').replace('~', " ")).unwrap();
        columns.push(Column { id: 0, name: name.to_owned(), required, kind, doc: None });
    }
    let mut schema = TableSchema { schema_id: 3, columns, identifier_ids: Vec::new(), last_column_id };
    crate::evolve::number_new_columns(&mut schema);
    last_column_id = schema.last_column_id;
    let identifier_ids = schema.columns.iter().filter(|column| keys.contains(&column.name.as_str())).map(|column| column.id);
    TableSchema { identifier_ids: identifier_ids.collect(), last_column_id, ..schema }
}

#[expect(clippy::needless_pass_by_value, reason = "tests write the overrides in place")]
pub(crate) fn settings(overrides: TableOverrides) -> TableSettings {
    TableSettings::resolve(&[&overrides])
}

/// A batch run through conversion and fold.
pub(crate) struct Run {
    pub(crate) converted: Converted,
    pub(crate) folded: Folded,
}

pub(crate) fn run(events: &[ChangeEvent<'_>], table: Option<&TableSchema>, settings: &TableSettings) -> Run {
    run_with(events, (table, None), settings)
}

pub(crate) fn run_with(
    events: &[ChangeEvent<'_>],
    (table, stored): (Option<&TableSchema>, Option<&RecordBatch>),
    settings: &TableSettings,
) -> Run {
    let events: Vec<&ChangeEvent<'_>> = events.iter().collect();
    let context = TableContext { schema: table, settings, case: NameCase::Lower, ddl_columns: &[], refused: &[] };
    let converted = convert(&events, &context).unwrap();
    let folded = fold(&converted, stored).unwrap();
    assert_eq!(folded.rows.schema(), crate::arrow_schema(&converted.schema));
    let decided = converted.rejections.len() + folded.outcomes.len();
    assert_eq!(decided, events.len(), "each event has one outcome");
    Run { converted, folded }
}

impl Run {
    pub(crate) fn rows(&self) -> Vec<String> {
        render(&self.folded.rows)
    }

    pub(crate) fn deleted(&self) -> Vec<String> {
        self.folded.delete_keys.as_ref().map(render).unwrap_or_default()
    }

    /// `columns` as text, sorted.
    pub(crate) fn columns(&self) -> String {
        let columns = self.converted.schema.columns.iter();
        columns
            .map(|column| format!("{}:{}{}", column.name, column.kind, if column.required { "!" } else { "" }))
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// The codes of refused events, of conversion and fold.
    pub(crate) fn codes(&self) -> Vec<(usize, &'static str)> {
        let folded = self.folded.outcomes.iter().filter_map(|(event, outcome)| match outcome {
            Outcome::Rejected(rejection) => Some((*event, rejection)),
            _ => None,
        });
        let all = self.converted.rejections.iter().map(|(event, rejection)| (*event, rejection)).chain(folded);
        let mut codes: Vec<_> = all.map(|(event, rejection): (usize, &Rejection)| (event, rejection.code.as_str())).collect();
        codes.sort_unstable();
        codes
    }
}

/// The rows of a batch as text, sorted.
pub(crate) fn render(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::new().with_null("null");
    let formatters: Vec<_> = batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
    let row = |index: usize| formatters.iter().map(|formatter| formatter.value(index).to_string()).collect::<Vec<_>>().join("|");
    let mut rows: Vec<String> = (0..batch.num_rows()).map(row).collect();
    rows.sort_unstable();
    rows
}

/// A batch of stored rows, each given as the JSON of a row.
pub(crate) fn stored(table: &TableSchema, rows: &[&str]) -> RecordBatch {
    let events: Vec<_> = rows.iter().map(|row| insert(row)).collect();
    let append = settings(TableOverrides { mode: Some(crate::settings::WriteMode::Append), ..TableOverrides::default() });
    let run = run(&events, Some(table), &append);
    assert_eq!(run.codes(), []);
    run.folded.rows
}

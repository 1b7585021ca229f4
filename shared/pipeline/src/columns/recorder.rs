//! What is noted while a record is converted: faults, and changes that it asks of the schema.

use sluice_model::{ColumnType, Image, ReasonCode, Rejection, Stage, UnchangedMarker, ValueHints};

use super::Cell;
use crate::evolve::Proposal;
use crate::infer::infer;
use crate::names::{NameCase, safe_name};
use crate::plan::{key_type_allowed, means_key};
use crate::settings::{OnDuplicateField, OnMissingRequired, OnWiderType};
use crate::unchanged::is_unchanged;
use crate::values::{ColumnRules, Fault, TableRules};

/// What becomes of fields without a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnknownFields {
    Refuse,
    Ignore,
    Add,
}

/// Position of a fault that no field of the record has: absent values come behind all others.
pub(crate) const NO_POSITION: u32 = u32::MAX;

/// Notes of one record.
#[derive(Debug)]
pub(crate) struct Recorder<'r> {
    pub(crate) table: &'r TableRules<'r>,
    pub(crate) case: NameCase,
    pub(crate) unknown: UnknownFields,
    pub(crate) hints: ValueHints,
    own_prefix: Option<&'static str>,
    unchanged: UnchangedMarker,
    /// The key of a table that is to be created: its columns are made whatever becomes of other unknown fields.
    pub(crate) new_key: &'r [String],
    faults: Vec<(u32, Rejection)>,
    proposals: Vec<Proposal>,
}

impl<'r> Recorder<'r> {
    pub(crate) fn new(table: &'r TableRules<'r>, case: NameCase, unknown: UnknownFields) -> Self {
        Self {
            table,
            case,
            unknown,
            hints: ValueHints::default(),
            own_prefix: None,
            unchanged: UnchangedMarker::Never,
            new_key: &[],
            faults: Vec::new(),
            proposals: Vec::new(),
        }
    }

    /// Begins to read an image: its marks hold for the fields that follow.
    pub(crate) fn begin(&mut self, image: &Image<'_>) {
        self.own_prefix = image.own_prefix;
        self.unchanged = image.unchanged;
    }

    /// The faults and proposals of the record, which ends here. Faults stand in the order of its fields.
    pub(crate) fn take(&mut self) -> (Vec<Rejection>, Vec<Proposal>) {
        self.sort_faults(0);
        let faults = std::mem::take(&mut self.faults).into_iter().map(|(_, rejection)| rejection).collect();
        (faults, std::mem::take(&mut self.proposals))
    }

    /// Whether the record asks for a new column that is the key column called `key`.
    pub(crate) fn proposes_key(&self, key: &str) -> bool {
        let is_key = |name: &str| means_key(&[key.to_owned()], name, self.case);
        self.proposals.iter().any(|proposal| matches!(proposal, Proposal::Add { parent, name, .. } if parent.is_empty() && is_key(name)))
    }

    pub(crate) fn fault_count(&self) -> usize {
        self.faults.len()
    }

    /// Gives the faults from `start` on the position of the field that they are in.
    pub(crate) fn place_faults(&mut self, start: usize, position: u32) {
        for (place, _) in self.faults.iter_mut().skip(start) {
            *place = position;
        }
    }

    pub(crate) fn sort_faults(&mut self, start: usize) {
        if let Some(own) = self.faults.get_mut(start..) {
            own.sort_by_key(|(position, _)| *position);
        }
    }

    pub(crate) fn refuse(&mut self, path: &[String], fault: Fault) {
        let rejection = Rejection::of_field(Stage::Convert, fault.code, path.join("."), fault.detail);
        self.faults.push((NO_POSITION, rejection));
    }

    pub(crate) fn refuse_field(&mut self, parent: &[String], name: &str, fault: Fault) {
        let mut path = parent.to_vec();
        path.push(name.to_owned());
        self.refuse(&path, fault);
    }

    /// A value that needs a wider type.
    pub(crate) fn widen(&mut self, path: &[String], wider: ColumnType, fault: Fault) {
        match self.table.settings.on_wider_type {
            OnWiderType::Promote => self.proposals.push(Proposal::Widen { path: path.to_vec(), kind: wider }),
            OnWiderType::DeadLetter => self.refuse(path, fault),
        }
    }

    /// A declared type that is wider than the column. Whether the column will be widened: then its value is read in the next round.
    pub(crate) fn widen_declared(&mut self, path: &[String], wider: ColumnType) -> bool {
        match self.table.settings.on_wider_type {
            OnWiderType::Promote => {
                self.proposals.push(Proposal::Widen { path: path.to_vec(), kind: wider });
                true
            }
            OnWiderType::DeadLetter => false,
        }
    }

    /// A null where the table requires a value.
    pub(crate) fn required_null(&mut self, path: &[String]) {
        match self.table.settings.on_missing_required {
            OnMissingRequired::Relax => self.proposals.push(Proposal::Relax { path: path.to_vec() }),
            OnMissingRequired::DeadLetter => {
                let detail = "the column is required and the record has null; on_missing_required = \"relax\" makes it optional";
                self.refuse(path, Fault::new(ReasonCode::RequiredNull, detail));
            }
        }
    }

    /// Two fields of one object that fill the same column. Whether the later one counts.
    pub(crate) fn collision(&mut self, path: &[String], first: &str, second: &str) {
        if first != second {
            let detail = format!("the fields `{first}` and `{second}` both fill this column; rename one of them");
            self.refuse(path, Fault::new(ReasonCode::NameCollision, detail));
            return;
        }
        self.duplicate(path, second);
    }

    pub(crate) fn duplicate(&mut self, path: &[String], name: &str) {
        match self.table.settings.on_duplicate_field {
            OnDuplicateField::Last => {}
            OnDuplicateField::DeadLetter => {
                let detail = format!("the field `{name}` stands twice; on_duplicate_field = \"last\" takes the last one");
                self.refuse(path, Fault::new(ReasonCode::DuplicateField, detail));
            }
        }
    }

    /// Refuses a value in which a field stands twice, wherever it is.
    pub(crate) fn check_duplicates(&mut self, path: &[String], cell: &Cell<'_>) {
        if self.table.settings.on_duplicate_field == OnDuplicateField::DeadLetter
            && let Some(name) = cell.node.first_duplicate()
        {
            self.duplicate(path, &name);
        }
    }

    /// A field that finds no column.
    pub(crate) fn unknown_field(&mut self, parent: &[String], name: &str, cell: &Cell<'_>) {
        let own = parent.is_empty() && self.own_prefix.is_some_and(|prefix| name.starts_with(prefix));
        match self.unknown {
            _ if own => {}
            UnknownFields::Ignore if parent.is_empty() && means_key(self.new_key, name, self.case) => {
                self.propose_column(parent, name, cell)
            }
            UnknownFields::Ignore => {
                let mut path = parent.to_vec();
                path.push(name.to_owned());
                self.check_duplicates(&path, cell);
            }
            // Nothing is lost with a field that holds no value: it would make no column either.
            UnknownFields::Refuse if self.has_no_value(cell) => {}
            UnknownFields::Refuse => {
                let detail = "the table has no column for this field; on_unknown_column = \"add\" adds it, \"ignore\" leaves it out";
                self.refuse_field(parent, name, Fault::new(ReasonCode::UnknownColumn, detail));
            }
            UnknownFields::Add => self.propose_column(parent, name, cell),
        }
    }

    /// Whether a field only says that it did not change, or holds nothing that has a type.
    fn has_no_value(&self, cell: &Cell<'_>) -> bool {
        let typeless = || matches!(infer(cell, &ColumnRules::new(None), self.case), Ok(None));
        cell.declared.is_none() && (is_unchanged(self.unchanged, cell.node) || typeless())
    }

    pub(crate) fn propose_column(&mut self, parent: &[String], name: &str, cell: &Cell<'_>) {
        if cell.declared.is_none() && is_unchanged(self.unchanged, cell.node) {
            return;
        }
        let settings = self.table.settings;
        let own_settings = || settings.column(name).or_else(|| settings.column(&safe_name(name, self.case)));
        let column = if parent.is_empty() { own_settings() } else { None };
        let kind = match column.and_then(|column| column.column_type.clone()) {
            Some(kind) => Ok(Some(kind)),
            None => infer(cell, &ColumnRules::new(column), self.case),
        };
        let is_key = parent.is_empty() && means_key(self.new_key, name, self.case);
        match kind {
            Ok(Some(kind)) if is_key && !key_type_allowed(&kind) => {
                let detail = format!("a key column cannot be {kind}; columns.<name>.type declares an exact type");
                self.refuse_field(parent, name, Fault::new(ReasonCode::TypeNotRepresentable, detail));
            }
            Ok(Some(kind)) => self.proposals.push(Proposal::Add { parent: parent.to_vec(), name: name.to_owned(), kind }),
            Ok(None) => {
                let path = [parent, &[name.to_owned()]].concat();
                self.check_duplicates(&path, cell);
            }
            Err(fault) => self.refuse_field(parent, name, fault),
        }
    }
}

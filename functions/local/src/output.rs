//! What is printed: text with colours on a terminal, or JSON.

use std::process::ExitCode;

use anstream::{eprint, eprintln, println};
use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};

use crate::failure::Failure;

const HEADING: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const FAINT: Style = Style::new().dimmed();

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// For a person.
    Text,
    /// For a program: one JSON value a line.
    Json,
}

/// Where results go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    form: Form,
}

impl Output {
    /// An output of that form.
    #[must_use]
    pub(crate) const fn new(form: Form) -> Self {
        Self { form }
    }

    /// Prints one result: `json` as a line of JSON, or what `text` prints.
    pub(crate) fn result(&self, json: &Value, text: impl FnOnce(&Self)) {
        match self.form {
            Form::Json => println!("{json}"),
            Form::Text => text(self),
        }
    }

    /// A line of a person's output; nothing in JSON form.
    pub(crate) fn line(&self, text: &str) {
        match self.form {
            Form::Json => {}
            Form::Text => println!("{text}"),
        }
    }

    /// A heading.
    pub(crate) fn heading(&self, text: &str) {
        self.line(&format!("{HEADING}{text}{HEADING:#}"));
    }

    /// A line that says that something is right.
    pub(crate) fn good(&self, text: &str) {
        self.line(&format!("{GOOD}{text}{GOOD:#}"));
    }

    /// A line that says that something is wrong.
    pub(crate) fn bad(&self, text: &str) {
        self.line(&format!("{BAD}{text}{BAD:#}"));
    }

    /// A line in the background.
    pub(crate) fn faint(&self, text: &str) {
        self.line(&format!("{FAINT}{text}{FAINT:#}"));
    }

    /// Progress of long work: one line of the terminal that is written over, when results do not go to that terminal themselves.
    pub(crate) fn progress(&self, text: &str) {
        let to_terminal = std::io::IsTerminal::is_terminal(&std::io::stderr()) && !std::io::IsTerminal::is_terminal(&std::io::stdout());
        if to_terminal {
            eprint!("\r{FAINT}{text}{FAINT:#}");
        }
    }

    /// Whether a person reads it.
    #[cfg(feature = "run")]
    #[must_use]
    pub(crate) fn is_text(&self) -> bool {
        self.form == Form::Text
    }

    /// A line of JSON, whatever the form: for what goes on for long and is read by a program when no person looks.
    #[cfg(feature = "run")]
    pub(crate) fn json_line(&self, json: &Value) {
        println!("{json}");
    }

    /// Writes lines over the `before` lines that were written last.
    #[cfg(feature = "run")]
    pub(crate) fn redraw(&self, before: usize, lines: &[String]) {
        if before > 0 {
            anstream::print!("\x1b[{before}A\x1b[J");
        }
        lines.iter().for_each(|line| self.line(line));
    }

    /// A table with a header row, its columns as wide as they need.
    pub(crate) fn table(&self, header: &[&str], rows: &[Vec<String>]) {
        let mut widths: Vec<usize> = header.iter().map(|cell| cell.chars().count()).collect();
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let line = |cells: &[String]| {
            let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        let header: Vec<String> = header.iter().map(|cell| (*cell).to_owned()).collect();
        self.faint(&line(&header));
        rows.iter().for_each(|row| self.line(&line(row)));
    }

    /// Says why a command failed; the process's exit code.
    #[must_use]
    pub(crate) fn fail(&self, failure: &Failure) -> ExitCode {
        match self.form {
            Form::Json => println!("{}", json!({"error": failure.message, "hint": failure.hint, "exit_code": failure.exit as u8})),
            Form::Text => {
                eprintln!("{BAD}error:{BAD:#} {}", failure.message);
                if !failure.hint.is_empty() {
                    eprintln!("{FAINT}next:{FAINT:#}  {}", failure.hint);
                }
            }
        }
        ExitCode::from(failure.exit as u8)
    }
}

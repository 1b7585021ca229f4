//! `sluice init`: a configuration to start from.

use serde_json::json;

use crate::cli::InitArgs;
use crate::failure::{Exit, Failure};
use crate::output::Output;

/// The template: every line of it is valid, and a test reads it.
pub(crate) const TEMPLATE: &str = include_str!("template.toml");

/// Writes the template; never over a file that is there.
///
/// # Errors
/// When the file is there already or cannot be written.
pub(crate) fn run(args: &InitArgs, output: &Output) -> Result<(), Failure> {
    let path = args.path.display().to_string();
    if args.path.exists() {
        let hint = "give another path: sluice init other.toml".to_owned();
        return Err(Failure { exit: Exit::Config, message: format!("{path} is there already"), hint });
    }
    std::fs::write(&args.path, TEMPLATE).map_err(|error| Failure::failed(format!("{path}: {error}"), "does the folder exist?"))?;
    output.result(&json!({"written": path}), |output| {
        output.good(&format!("wrote {path}"));
        output.line("next: sluice validate, then sluice invoke ingest --event EVENT.json");
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use sluice_runtime::Settings;

    use super::*;

    #[test]
    fn the_template_is_a_valid_configuration() {
        let settings = Settings::from_toml(TEMPLATE).unwrap();
        assert_eq!(settings.source.formats.len(), 1);
    }
}

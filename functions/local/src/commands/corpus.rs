//! `sluice corpus`: conformance cases, each in a fresh embedded lake.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::cli::CorpusArgs;
use crate::corpus::case::Case;
use crate::corpus::{Outcome, Verdict, run_case};
use crate::failure::Failure;
use crate::output::Output;

/// Runs all cases of a folder.
///
/// # Errors
/// Exit code 4 when a case fails, 3 when there is none.
pub(crate) async fn run(args: &CorpusArgs, output: &Output) -> Result<(), Failure> {
    // Catalog locations must be absolute, wherever the folder is named from.
    let keep = args.keep.as_ref().map(|keep| std::path::absolute(keep).unwrap_or_else(|_| keep.clone()));
    let kinds = kinds(&args.dir);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut by_kind: BTreeMap<String, [usize; 3]> = BTreeMap::new();
    let paths = files(&args.dir)?;
    for (index, path) in paths.iter().enumerate() {
        output.progress(&format!("{}/{}", index + 1, paths.len()));
        let (id, verdict) = match read(path) {
            Ok(case) if args.only.as_ref().is_some_and(|only| !format!("{} {}", case.id, case.name).contains(only.as_str())) => continue,
            Ok(case) => (case.id.clone(), run_case(&case, keep.as_deref()).await),
            Err(reason) => (path.display().to_string(), Verdict { outcome: Outcome::Fail, reason }),
        };
        *counts.entry(verdict.outcome.as_str()).or_default() += 1;
        let kind = kinds.get(&id).cloned().unwrap_or_else(|| "other".to_owned());
        by_kind.entry(kind).or_default()[column(verdict.outcome)] += 1;
        print(&id, &verdict, output);
    }
    let count = |outcome: Outcome| counts.get(outcome.as_str()).copied().unwrap_or_default();
    let (passed, failed, unsupported) = (count(Outcome::Pass), count(Outcome::Fail), count(Outcome::Unsupported));
    if passed + failed + unsupported == 0 {
        return Err(Failure::not_found(
            format!("no cases in {}", args.dir.display()),
            "a case is a .json file with id, batches and expect",
        ));
    }
    print_kinds(&by_kind, output);
    output.heading(&format!("{passed} passed, {failed} failed, {unsupported} unsupported"));
    if failed == 0 { Ok(()) } else { Err(Failure::check(format!("{failed} case(s) failed"))) }
}

const fn column(outcome: Outcome) -> usize {
    match outcome {
        Outcome::Pass => 0,
        Outcome::Fail => 1,
        Outcome::Unsupported => 2,
    }
}

fn print_kinds(by_kind: &BTreeMap<String, [usize; 3]>, output: &Output) {
    let rows: Vec<Vec<String>> = by_kind
        .iter()
        .map(|(kind, counts)| {
            std::iter::once(kind.clone()).chain(counts.map(|count| if count == 0 { "·".to_owned() } else { count.to_string() })).collect()
        })
        .collect();
    output.table(&["kind", "pass", "fail", "unsupported"], &rows);
}

/// The kind of each case by its id, from the table "Cases by kind" of the folder's README, where there is one.
fn kinds(dir: &Path) -> BTreeMap<String, String> {
    let readme = std::fs::read_to_string(dir.join("README.md")).unwrap_or_default();
    let rows = readme
        .lines()
        .skip_while(|line| !line.starts_with("## Cases by kind"))
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    let mut kinds = BTreeMap::new();
    for (kind, cases) in rows {
        let kind = kind.split(" (").next().unwrap_or(kind);
        kinds.extend(cases.split(", ").filter_map(|case| Some((case.split(' ').next()?.to_owned(), kind.to_owned()))));
    }
    kinds
}

fn files(dir: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable = |error: std::io::Error| Failure::not_found(format!("{}: {error}", dir.display()), "name the folder with the cases");
    let entries = std::fs::read_dir(dir).map_err(unreadable)?.collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    let mut files: Vec<PathBuf> = entries
        .into_iter()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort_unstable();
    Ok(files)
}

fn read(path: &Path) -> Result<Case, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| format!("not a case: {error}"))
}

fn print(id: &str, verdict: &Verdict, output: &Output) {
    output.result(&json!({"id": id, "outcome": verdict.outcome.as_str(), "reason": verdict.reason}), |output| match verdict.outcome {
        Outcome::Pass => output.good(&format!("pass         {id}")),
        Outcome::Fail => output.bad(&format!("fail         {id}  {}", verdict.reason)),
        Outcome::Unsupported => output.faint(&format!("unsupported  {id}  {}", verdict.reason)),
    });
}

//! The same for people who would rather look: one self-contained page, without scripts and without anything from elsewhere.

use std::fmt::Write as _;

use super::{Health, PartitionHealth};

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;color:#1b1f24;background:#fff}\
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}table{border-collapse:collapse}td,th{padding:.2rem .8rem .2rem 0;text-align:left}\
td.n{text-align:right;font-variant-numeric:tabular-nums}rect{fill:#2f6f9f}svg text{font-size:11px;fill:currentColor}\
@media(prefers-color-scheme:dark){body{color:#dde3ea;background:#14181d}rect{fill:#6fb0dd}}";
/// The most partitions that are listed.
const PARTITIONS: usize = 50;

/// The page.
#[must_use]
pub fn html(tables: &[Health]) -> String {
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Table health</title><style>{STYLE}</style></head><body>"
    );
    for health in tables {
        table(&mut page, health);
    }
    page.push_str("</body></html>\n");
    page
}

fn table(page: &mut String, health: &Health) {
    let _ = write!(page, "<h1>{}</h1><table>", escape(health.table.as_str()));
    let last = health.since_last_commit_ms.map_or_else(|| "never".to_owned(), |ms| format!("{} min ago", ms / 60_000));
    let ratio = health
        .storage_bytes
        .map(|bytes| format!("{} ({} % needed now)", size(bytes), health.data_bytes.saturating_mul(100) / bytes.max(1)));
    let rows = [
        ("last commit", last),
        ("data files", format!("{} ({} small)", health.data_files, health.small_files)),
        ("data", format!("{}, {} rows", size(health.data_bytes), health.records)),
        ("equality deletes", format!("{} in {} files", health.equality_deletes, health.equality_delete_files)),
        ("position deletes", format!("{} in {} files", health.position_deletes, health.position_delete_files)),
        ("snapshots", health.snapshots.to_string()),
        ("manifests", format!("{} ({})", health.manifests, size(health.manifest_bytes))),
        ("storage", ratio.unwrap_or_else(|| "not listed".to_owned())),
    ];
    for (name, value) in rows {
        let _ = write!(page, "<tr><th>{name}</th><td>{}</td></tr>", escape(&value));
    }
    page.push_str("</table><h2>Due</h2><table>");
    for (job, what) in &health.due {
        let _ = write!(page, "<tr><th>{job}</th><td>{}</td></tr>", escape(what));
    }
    page.push_str("</table><h2>Data files by size</h2>");
    let label = |bytes: u64| if bytes == u64::MAX { "larger".to_owned() } else { format!("< {}", size(bytes)) };
    bars(page, &health.sizes.iter().map(|bar| (label(bar.below_bytes), bar.files)).collect::<Vec<_>>());
    page.push_str("<h2>Commits by hour, last 24</h2>");
    bars(page, &health.commits_by_hour.iter().rev().enumerate().rev().map(|(ago, count)| (format!("−{ago}"), *count)).collect::<Vec<_>>());
    partitions(page, &health.partitions);
}

fn bars(page: &mut String, values: &[(String, u64)]) {
    const HEIGHT: u64 = 120;
    let width = 720 / values.len().max(1);
    let most = values.iter().map(|(_, value)| *value).max().unwrap_or(0).max(1);
    let _ = write!(page, "<svg role=\"img\" viewBox=\"0 0 720 {}\" width=\"720\">", HEIGHT + 40);
    for (number, (label, value)) in values.iter().enumerate() {
        let (x, height) = (number * width, value.saturating_mul(HEIGHT) / most);
        let y = HEIGHT + 16 - height;
        let bar = width.saturating_sub(4);
        let _ =
            write!(page, "<rect x=\"{x}\" y=\"{y}\" width=\"{bar}\" height=\"{height}\"><title>{}: {value}</title></rect>", escape(label));
        if *value > 0 {
            let _ = write!(page, "<text x=\"{x}\" y=\"{}\">{value}</text>", y - 3);
        }
        let _ = write!(page, "<text x=\"{x}\" y=\"{}\">{}</text>", HEIGHT + 32, escape(label));
    }
    page.push_str("</svg>");
}

fn partitions(page: &mut String, partitions: &[PartitionHealth]) {
    let _ = write!(page, "<h2>Partitions ({})</h2><table><tr><th>partition</th><th>data files</th><th>small</th>", partitions.len());
    page.push_str("<th>bytes</th><th>delete files</th></tr>");
    for partition in partitions.iter().take(PARTITIONS) {
        let PartitionHealth { partition: name, data_files, bytes, small_files, delete_files } = partition;
        let name = if name.is_empty() { "(all)" } else { name };
        let _ = write!(page, "<tr><td>{}</td><td class=n>{data_files}</td><td class=n>{small_files}</td>", escape(name));
        let _ = write!(page, "<td class=n>{}</td><td class=n>{delete_files}</td></tr>", size(*bytes));
    }
    page.push_str("</table>");
}

fn size(bytes: u64) -> String {
    let units = [(1_u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit),
        None => format!("{bytes} B"),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_bring_markup_into_the_page() {
        assert_eq!(escape("<b>&\"x\""), "&lt;b&gt;&amp;&quot;x&quot;");
        assert_eq!((size(1023), size(1536), size(3 << 30)), ("1023 B".to_owned(), "1.5 KiB".to_owned(), "3.0 GiB".to_owned()));
    }
}

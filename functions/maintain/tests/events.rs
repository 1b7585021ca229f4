//! Every sample event of a schedule is understood.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use serde_json::Value;
use sluice_maintain::{JobName, Request, RequestMode};

fn event(name: &str) -> Request {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../events/schedule").join(name);
    Request::read(&serde_json::from_slice::<Value>(&std::fs::read(path).unwrap()).unwrap()).unwrap()
}

#[test]
fn sample_events_are_requests() {
    assert_eq!(event("nightly.json"), Request::default());
    let some = event("some-tables.json");
    assert_eq!((some.tables.as_deref(), some.mode), (Some(&["lake.*".to_owned()][..]), Some(RequestMode::Plan)));
    let orphans = event("remove-planned-orphans.json");
    assert!(orphans.plan.is_some());
    assert_eq!(orphans.mode(JobName::Orphans), RequestMode::Execute);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../events/schedule");
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 3, "a new sample needs a line here");
}

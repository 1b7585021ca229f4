//! What a function is asked: the event of a schedule, or the same by hand.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sluice_maintenance::compact::WhereOthersCompact;
use sluice_maintenance::orphans::PlanFormat;
use sluice_maintenance::{Compact, Expire, Job as _, Manifests, Orphans, Selector};

/// The jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobName {
    /// Small files and files with many deletes become few files without deletes.
    Compact,
    /// Old snapshots go, with the files that only they reached.
    Expire,
    /// Files that nothing needs go.
    Orphans,
    /// Many small manifests become few.
    Manifests,
}

impl JobName {
    /// As in the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Compact => Compact::NAME,
            Self::Expire => Expire::NAME,
            Self::Orphans => Orphans::NAME,
            Self::Manifests => Manifests::NAME,
        }
    }
}

/// How far to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestMode {
    /// Only look. For orphans the plan is written down, to be looked at.
    Plan,
    /// Do it. For orphans this takes a plan that was written down.
    Execute,
}

/// What a function is asked.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Tables by globs; those of the configuration when it is left out.
    pub tables: Option<Vec<String>>,
    /// But not these.
    #[serde(default)]
    pub except: Vec<String>,
    /// How far to go; when it is left out, all jobs but orphan removal do their work.
    pub mode: Option<RequestMode>,
    /// For orphans: the location of the plan to execute.
    pub plan: Option<String>,
    /// For orphans: how the plan is written; JSON when it is left out.
    pub format: Option<PlanFormat>,
    /// For compaction: what to do where a service of the catalog compacts already; that of the configuration when it is left out.
    pub where_others_compact: Option<WhereOthersCompact>,
}

impl Request {
    /// Reads the event: a request, or the scheduled event of EventBridge, whose `detail` is one. A key that it does not know is an error: a typing mistake must not
    /// select all tables.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(event: &Value) -> Result<Self, String> {
        let asked = match event.get("detail-type") {
            Some(_) => event.get("detail").cloned().unwrap_or(Value::Null),
            None => event.clone(),
        };
        match asked {
            Value::Null => Ok(Self::default()),
            asked => serde_json::from_value(asked).map_err(|error| format!("the event is no request: {error}; see events/schedule")),
        }
    }

    /// The selector, with that of the configuration where the request says nothing.
    #[must_use]
    pub fn selector(&self, configured: &Selector) -> Selector {
        let mut except = configured.except.clone();
        except.extend(self.except.iter().cloned());
        Selector { tables: self.tables.clone().unwrap_or_else(|| configured.tables.clone()), except }
    }

    /// How far to go.
    #[must_use]
    pub fn mode(&self, job: JobName) -> RequestMode {
        let given = match (job, &self.plan) {
            (JobName::Compact | JobName::Expire | JobName::Manifests, _) | (JobName::Orphans, Some(_)) => RequestMode::Execute,
            (JobName::Orphans, None) => RequestMode::Plan,
        };
        self.mode.unwrap_or(given)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schedules_event_and_a_bare_request() {
        let schedule = json!({
            "version": "0", "id": "x", "detail-type": "Scheduled Event", "source": "aws.events", "account": "1", "time": "2026-03-01T00:00:00Z",
            "region": "eu-central-1", "resources": [], "detail": {},
        });
        assert_eq!(Request::read(&schedule).unwrap(), Request::default());
        let asked = Request::read(&json!({"tables": ["shop.*"], "mode": "plan"})).unwrap();
        assert_eq!((asked.tables, asked.mode), (Some(vec!["shop.*".to_owned()]), Some(RequestMode::Plan)));
        assert!(Request::read(&json!({"table": "shop.orders"})).is_err());
        assert!(Request::read(&json!([1])).is_err());
    }

    #[test]
    fn orphans_are_only_looked_for_unless_there_is_a_plan() {
        let none = Request::default();
        assert_eq!(none.mode(JobName::Orphans), RequestMode::Plan);
        assert_eq!(none.mode(JobName::Expire), RequestMode::Execute);
        let planned = Request { plan: Some("s3://b/plan.json".to_owned()), ..Request::default() };
        assert_eq!(planned.mode(JobName::Orphans), RequestMode::Execute);
    }

    #[test]
    fn exceptions_of_the_configuration_always_hold() {
        let configured = Selector { tables: vec!["*".to_owned()], except: vec!["ops.*".to_owned()] };
        let request = Request { tables: Some(vec!["ops.x".to_owned()]), ..Request::default() };
        assert_eq!(request.selector(&configured), Selector { tables: vec!["ops.x".to_owned()], except: vec!["ops.*".to_owned()] });
    }
}

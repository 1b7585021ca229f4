//! What a function answers, within the limits of who asked.

use serde_json::{Value, json};
use sluice_maintenance::Report;

use crate::Reply;

/// The most bytes of an answer, with room for what is around it. A state machine of Step Functions fails a task whose result is larger than 256 KiB.
const MAX_BYTES: usize = 240_000;

/// The reports, those of failed and unfinished tables first; where they are too long without their plans, and in the end as many as there is room for. `left_out` says
/// how many that leaves out.
#[must_use]
pub fn answer(reply: &Reply, mb_seconds: Option<u64>) -> Value {
    let mut reports: Vec<Value> = ordered(&reply.reports).into_iter().map(|report| json!(report)).collect();
    if bytes(&reports) > MAX_BYTES {
        reports.iter_mut().for_each(without_plan);
    }
    let mut left = MAX_BYTES;
    let fit = reports.iter().take_while(|report| {
        let bytes = report.to_string().len() + 1;
        let fits = bytes <= left;
        left = left.saturating_sub(bytes);
        fits
    });
    let fit = fit.count();
    let left_out = reports.split_off(fit).len();
    json!({"reports": reports, "left_out": left_out, "plans": reply.plans, "mb_seconds": mb_seconds})
}

fn ordered(reports: &[Report]) -> Vec<&Report> {
    let mut ordered: Vec<&Report> = reports.iter().collect();
    ordered.sort_by_key(|report| report.outcome.is_settled());
    ordered
}

fn bytes(reports: &[Value]) -> usize {
    reports.iter().map(|report| report.to_string().len() + 1).sum()
}

fn without_plan(report: &mut Value) {
    if let Some(plan) = report.get_mut("plan") {
        *plan = Value::Null;
    }
}

#[cfg(test)]
mod tests {
    use sluice_maintenance::{Outcome, Report};
    use sluice_model::TableName;

    use super::*;

    fn report(index: usize, outcome: Outcome, plan: Value) -> Report {
        let table = TableName::parse(&format!("erp.table_{index}")).unwrap();
        Report { plan, ..Report::of("compact", table, outcome) }
    }

    #[test]
    fn plans_go_where_the_answer_would_be_too_long() {
        let plan = json!({"groups": ["x".repeat(1_000)]});
        let few = Reply { reports: vec![report(0, Outcome::Done, plan.clone())], plans: Vec::new() };
        assert_eq!(answer(&few, None)["reports"][0]["plan"], plan);
        let many = Reply { reports: (0..300).map(|index| report(index, Outcome::Done, plan.clone())).collect(), plans: Vec::new() };
        let short = answer(&many, None);
        assert!(short.to_string().len() < 256 << 10);
        assert_eq!((short["reports"].as_array().unwrap().len(), &short["reports"][0]["plan"]), (300, &Value::Null));
    }

    #[test]
    fn what_needs_a_look_is_told_first_and_the_rest_counted() {
        let mut reports: Vec<Report> = (0..2_000).map(|index| report(index, Outcome::NothingDue, Value::Null)).collect();
        reports.push(report(2_000, Outcome::Failed("denied".to_owned()), Value::Null));
        let told = answer(&Reply { reports, plans: Vec::new() }, Some(7));
        assert!(told.to_string().len() < 256 << 10);
        assert_eq!(told["reports"][0]["outcome"]["kind"], "failed");
        let kept = told["reports"].as_array().unwrap().len();
        assert_eq!((told["left_out"].as_u64().unwrap(), kept > 100), (2_001 - kept as u64, true));
    }
}

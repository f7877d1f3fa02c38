//! Records that cannot be read make their issue unknown, never wrong.

use super::*;

fn fields(pairs: &[(&str, &str)]) -> Vec<Field> {
    pairs.iter().map(|(name, value)| Field::new(*name, *value)).collect()
}

#[test]
fn a_wrong_record_gives_no_issue() {
    let today = "2026-05-11".parse().unwrap();
    let mut collector = Collector::new(true);
    let good = [("sIssueCode", "130A"), ("sIssueName", "x"), ("sBaibaiTani", "100")];
    for (name, value) in
        [("sBaibaiTani", "0"), ("sBaibaiTani", "-1"), ("sIssueCode", "13"), ("sIssueCode", "a b c")]
    {
        let wrong = good.map(|(field, old)| (field, if field == name { value } else { old }));
        collector.take("CLMIssueMstKabu", &fields(&wrong), today);
    }
    assert_eq!(collector.unread, 4);
    collector.take("CLMIssueMstKabu", &fields(&good), today);
    let market = [("sIssueCode", "130A"), ("sYobineTaniNumber", "101"), ("sNehabaMax", " ")];
    collector.take("CLMIssueSizyouMstKabu", &fields(&market), today);
    collector.take("CLMDateZyouhou", &fields(&[("sDayKey", "001"), ("sTheDay", "2026")]), today);
    let masters = collector.masters(today);
    let issue = masters.issue("130A").unwrap();
    assert_eq!((issue.upper_limit, issue.ticks, masters.issue_count()), (None, 101, 1));
    assert!(masters.days.is_none() && masters.ticks(issue).is_none() && !masters.is_whole());
}

//! What is told of the release; how orders are written and read is tested with release 8.

use kumiki_dialect_sdk::prelude::*;
use kumiki_dialect_sdk::testing::{order, shown};

use super::*;

#[test]
fn it_is_release_10_and_writes_orders_as_the_samples_do() {
    let told = WebBrokerV4r10::describe();
    assert_eq!(told.name, "web-broker-v4r10");
    assert!(told.summary.ends_with("release 10") && !told.decodes_answers, "{told:?}");
    let market = order(Side::Sell, OrderType::Market, &[]);
    let made = WebBrokerV4r10::new_order(&market, "1", &[]).unwrap();
    assert_eq!(
        shown(&made),
        "sZyoutoekiKazeiC=1 sIssueCode=7203 sSizyouC=00 sBaibaiKubun=1 sCondition=0 sOrderPrice=0 \
         sOrderSuryou=100 sGenkinShinyouKubun=0 sOrderExpireDay=0 sGyakusasiOrderType=0 \
         sGyakusasiZyouken=0 sGyakusasiPrice=* sTatebiType=* sTategyokuZyoutoekiKazeiC=*"
    );
}

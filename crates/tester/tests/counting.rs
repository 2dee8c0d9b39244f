//! Every frame is accounted for.

mod bed;

use bed::{Bed, flow, request, trial};

#[test]
fn what_is_sent_over_a_plain_wire_is_received() {
    let bed = bed!(Bed::pair("plain"));
    let mut tester = bed.tester();
    eprintln!("{}", tester.facts());
    for rate in [10_000.0, 100_000.0, 500_000.0, 1_000_000.0, 2e6, 4e6, 8e6] {
        let outcome = trial(&mut tester, &request(&flow(false, 0), rate, 0.3));
        eprintln!("{rate} {}", serde_json::to_string(&{let mut o = outcome.clone(); o["streams"][0]["latency"]["hdr_base64"]="".into();o["streams"][0]["ipdv"]["hdr_base64"]="".into();o}).unwrap());
    }
}

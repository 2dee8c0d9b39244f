//! Prints what this host does, as JSON: `host [REQUEST]`, the request as JSON too.

use routecast_probe::error::ProbeError;
use routecast_probe::host::{ProbeRequest, probe};

fn main() -> Result<(), ProbeError> {
    let text = std::env::args().nth(1).unwrap_or_else(|| "{}".to_owned());
    let request: ProbeRequest = serde_json::from_str(&text)?;
    let begin = std::time::Instant::now();
    let outcome = probe(&request, &mut |share| {
        eprintln!("{:5.1} % after {:5.1} s", 100.0 * share, begin.elapsed().as_secs_f64());
        true
    })?;
    println!("{}", serde_json::to_string(&outcome)?);
    Ok(())
}

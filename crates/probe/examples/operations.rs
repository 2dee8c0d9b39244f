//! Prints what each operation costs on this host, in cycles of its core: `operations [--quick]`.

use routecast_probe::host::Clock;
use routecast_probe::operation::probe::samples;

fn main() -> Result<(), routecast_probe::error::ProbeError> {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let begin = std::time::Instant::now();
    let samples = samples(quick, 1, Clock::calibrate(3).tsc_hz, &mut |_| true)?;
    println!("{:<15} {:<48} {:>8} {:>8} {:>8}", "operation", "parameters", "least", "median", "most");
    for sample in &samples {
        let mut cycles = sample.cycles.clone();
        cycles.sort_by(f64::total_cmp);
        let parameters: Vec<String> = sample
            .parameters
            .iter()
            .map(|(name, value)| format!("{name}={:.3}", value.as_f64().unwrap_or(0.0)))
            .collect();
        println!(
            "{:<15} {:<48} {:>8.2} {:>8.2} {:>8.2}",
            sample.operation,
            parameters.join(" ").replace(".000", ""),
            cycles[0],
            cycles[cycles.len() / 2],
            cycles[cycles.len() - 1],
        );
    }
    eprintln!("{} samples in {:.1} s", samples.len(), begin.elapsed().as_secs_f64());
    Ok(())
}

//! NexMark's q1, q3, q8 and q12 as native code: what the machine could do (`engine=limit`), and what timely
//! dataflow does (`engine=timely`). Prints one line of JSON. Or: --check golden.txt.

mod check;
mod draw;
mod flow;
mod limit;
mod model;
mod options;
mod records;
mod source;
mod state;

use std::fs::read_to_string;
use std::process::exit;

const TICKS_PER_S: f64 = 100.0; // of /proc, on every Linux

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let said = match words.as_slice() {
        [word, golden] if word == "--check" => checked(golden),
        words => options::Options::parse(words).and_then(|options| measured(&options)),
    };
    match said {
        Ok(line) => println!("{line}"),
        Err(problem) => {
            eprintln!("{problem}");
            exit(2);
        }
    }
}

fn checked(golden: &str) -> Result<String, String> {
    let text = read_to_string(golden).map_err(|error| format!("{golden}: {error}"))?;
    Ok(format!("{} records agree", check::all(&text)?))
}

fn measured(options: &options::Options) -> Result<String, String> {
    if !matches!(options.query.as_str(), "q1" | "q3" | "q8" | "q12") {
        return Err(format!("no query {}", options.query));
    }
    let (tally, took, checkpoints) = match options.engine.as_str() {
        "limit" => limit::run(options),
        "timely" => {
            let (tally, took) = flow::run(options);
            (tally, took, 0)
        }
        other => return Err(format!("no engine {other}")),
    };
    let seconds = took.as_secs_f64();
    Ok(format!(
        "{{\"records\": {}, \"count\": {}, \"checksum\": {}, \"rate\": {:.1}, \"elapsed_s\": {seconds:.4}, \
         \"cpu_s\": {:.2}, \"rss\": {}, \"checkpoints\": {checkpoints}}}",
        options.records(),
        tally.count,
        tally.checksum,
        options.records() as f64 / seconds,
        cpu_s(),
        rss(),
    ))
}

/// What this process has computed so far, in seconds.
fn cpu_s() -> f64 {
    let text = read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|word| word.parse::<u64>().ok()).sum();
    ticks as f64 / TICKS_PER_S
}

/// The most memory that it has had, in bytes.
fn rss() -> u64 {
    let text = read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0) * 1024
}

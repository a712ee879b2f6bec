//! What was asked for, as name=value words; benchmarks/native/native_peer.py says them all.

use std::collections::HashMap;
use std::path::PathBuf;

use crate::model::Size;

#[derive(Clone)]
pub struct Options {
    pub engine: String,
    pub query: String,
    pub size: Size,
    pub window_ms: u64, // 0: one window, for ever
    pub snapshot_ms: u64, // 0: none
    pub directory: PathBuf,
}

impl Options {
    pub fn parse(words: &[String]) -> Result<Options, String> {
        let said: HashMap<&str, &str> =
            words.iter().filter_map(|word| word.split_once('=')).collect();
        let text = |name: &str| said.get(name).copied().ok_or(format!("{name}= is missing"));
        let number = |name: &str| {
            text(name)?.parse::<u64>().map_err(|error| format!("{name}: {error}"))
        };
        let query = text("query")?.to_string();
        Ok(Options {
            engine: text("engine")?.to_string(),
            size: Size {
                seed: number("seed")?,
                partitions: number("partitions")?,
                records: number("records")?,
                duration_ms: number("duration_ms")?,
                disorder_ms: number("disorder_ms")?,
                hot: number("hot")?,
                hot_ms: number("hot_ms")?,
            },
            window_ms: if query == "q3" { 0 } else { number("window_ms")? },
            snapshot_ms: number("snapshot_ms")?,
            directory: PathBuf::from(text("directory")?),
            query,
        })
    }

    pub fn reads_bids(&self) -> bool {
        matches!(self.query.as_str(), "q1" | "q12")
    }

    /// The records of all sources and partitions.
    pub fn records(&self) -> u64 {
        let persons = if self.reads_bids() { 0 } else { self.size.persons() };
        (self.size.records + persons) * self.size.partitions
    }
}

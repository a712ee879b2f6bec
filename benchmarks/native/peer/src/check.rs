//! Compares the generator with records that Snapline's own has made: golden.txt, one record a line.

use crate::model::{Model, Size};
use crate::records::{name, CITIES, STATES};

/// The words of a line that say which record it is.
const SIZE: usize = 10;

/// How many records agree; an error at the first that does not.
pub fn all(golden: &str) -> Result<usize, String> {
    let mut agreed = 0;
    for line in golden.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split('\t').collect();
        let made = record(&words[..SIZE])?;
        if made != words[SIZE..].join("\t") {
            return Err(format!("{line}\nbut here it is\n{made}"));
        }
        agreed += 1;
    }
    if agreed == 0 {
        return Err("there is nothing to compare".to_string());
    }
    Ok(agreed)
}

fn record(words: &[&str]) -> Result<String, String> {
    let number = |at: usize| words[at].parse::<u64>().map_err(|error| error.to_string());
    let size = Size {
        seed: number(1)?,
        partitions: number(2)?,
        records: number(3)?,
        duration_ms: number(4)?,
        disorder_ms: number(5)?,
        hot: number(6)?,
        hot_ms: number(7)?,
    };
    let (model, offset) = (Model::new(size, number(8)?), number(9)?);
    // One record before it, if there is one: so the steps from record to record are compared, too.
    let first = offset.saturating_sub(1);
    match words[0] {
        "bids" => {
            let mut made = Vec::new();
            model.bids(first, offset + 1, &mut made);
            let it = made[made.len() - 1];
            Ok(format!("{}\t{}\t{}\t{}\t{}", it.id, it.time, it.auction, it.bidder, it.price))
        }
        "persons" => {
            let mut made = Vec::new();
            model.persons(first, offset + 1, &mut made);
            let it = made[made.len() - 1];
            let (city, state) = (CITIES[it.city as usize], STATES[it.state as usize]);
            Ok(format!("{}\t{}\t{}\t{}\t{city}\t{state}", it.id, it.time, it.person, name(it.name)))
        }
        "auctions" => {
            let mut made = Vec::new();
            model.auctions(first, offset + 1, &mut made);
            let it = made[made.len() - 1];
            let key = format!("{}\t{}\t{}\t{}", it.id, it.time, it.auction, it.seller);
            Ok(format!("{key}\t{}\t{}", it.category, it.reserve))
        }
        other => Err(format!("no stream {other}")),
    }
}

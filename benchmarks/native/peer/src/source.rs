//! One partition of the input, read in blocks.

use crate::model::{Model, Size, AUCTIONS_PER_PERSON};
use crate::records::{Auction, Bid, Person};

const BIDS: u64 = 1_024;
const PERSONS: u64 = 256;

pub struct Source {
    model: Model,
    next: u64,
    end: u64,
}

impl Source {
    /// Bids, or else persons with their auctions.
    pub fn new(size: Size, partition: u64, bids: bool) -> Source {
        let end = if bids { size.records } else { size.persons() };
        Source { model: Model::new(size, partition), next: 0, end }
    }

    pub fn at_end(&self) -> bool {
        self.next == self.end
    }

    /// How far it was read.
    pub fn offset(&self) -> u64 {
        self.next
    }

    /// Appends the next bids.
    pub fn bids(&mut self, out: &mut Vec<Bid>) {
        let stop = self.end.min(self.next + BIDS);
        self.model.bids(self.next, stop, out);
        self.next = stop;
    }

    /// Appends the next persons, and the auctions that open beside them: both advance together.
    pub fn events(&mut self, persons: &mut Vec<Person>, auctions: &mut Vec<Auction>) {
        let stop = self.end.min(self.next + PERSONS);
        self.model.persons(self.next, stop, persons);
        let (first, last) = (self.next * AUCTIONS_PER_PERSON, stop * AUCTIONS_PER_PERSON);
        self.model.auctions(first, last, auctions);
        self.next = stop;
    }

    /// What is read from now on is not earlier than this.
    pub fn watermark(&self) -> u64 {
        if self.at_end() {
            return u64::MAX;
        }
        let size = &self.model.size;
        (self.next * size.duration_ms / self.end).saturating_sub(size.disorder_ms)
    }
}

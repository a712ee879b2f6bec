//! One partition of the streams, field for field as snapline/workload/nexmark/model.py makes them in full.

use crate::draw::{part, Draw, Share};
use crate::records::{Auction, Bid, Person, CITIES, NAMES, STATES};

pub const FIRST_CATEGORY: u64 = 10;
pub const AUCTIONS_PER_PERSON: u64 = 3;
const BIDS_PER_PERSON: u64 = 46;
const PARTITION_BITS: u32 = 40;
const ACTIVE: u64 = 1_000;
const IN_FLIGHT: u64 = 100;
const CATEGORIES: u64 = 5;
const OCTAVES: u64 = 20;
const STEPS: u64 = 64;

/// The size of the input: `Params` of snapline/workload/common/base.py, and what a query adds to it.
#[derive(Clone, Copy)]
pub struct Size {
    pub seed: u64,
    pub partitions: u64,
    pub records: u64,
    pub duration_ms: u64,
    pub disorder_ms: u64,
    pub hot: u64,
    pub hot_ms: u64,
}

impl Size {
    /// Persons per partition, beside auctions; `records` is the number of those.
    pub fn persons(&self) -> u64 {
        (self.records / AUCTIONS_PER_PERSON).max(1)
    }

    fn bidders(&self) -> u64 {
        (self.records / BIDS_PER_PERSON).max(1)
    }

    fn lots(&self) -> u64 {
        (self.records * AUCTIONS_PER_PERSON / BIDS_PER_PERSON).max(1)
    }
}

/// A field of which some records name the hot key: `heated` of generated.py.
struct Hot {
    size: Size,
    count: u64,
    heat: Draw,
    partition: u64,
}

impl Hot {
    fn new(size: Size, field: &str, partition: u64, count: u64) -> Hot {
        let heat = Draw::new(size.seed, &format!("{field}.heat"), partition);
        let hot = Draw::new(size.seed, &format!("{field}.hot"), 0).at(0, size.partitions);
        Hot { size, count, heat, partition: hot }
    }

    /// The key, or the hot one instead.
    #[inline]
    fn instead(&self, key: u64, offset: u64) -> u64 {
        let size = &self.size;
        if size.hot == 0 || self.heat.at(offset, 100) >= size.hot {
            return key;
        }
        let mut since_ms = 0;
        if size.hot_ms != 0 {
            let due_ms = offset * size.duration_ms / size.records;
            since_ms = due_ms - due_ms % size.hot_ms;
        }
        since_ms * self.count / size.duration_ms * size.partitions + self.partition
    }
}

/// A partition.
pub struct Model {
    pub size: Size,
    partition: u64,
    person_bits: Draw,
    person_delay: Draw,
    auction_bits: Draw,
    auction_delay: Draw,
    bid_bits: Draw,
    seller: Hot,
    bidder: Hot,
    lot: Hot,
    prices: Vec<u64>,
}

impl Model {
    pub fn new(size: Size, partition: u64) -> Model {
        let draw = |field| Draw::new(size.seed, field, partition);
        let hot = |field, count| Hot::new(size, field, partition, count);
        Model {
            size,
            partition,
            person_bits: draw("persons"),
            person_delay: draw("persons.delay"),
            auction_bits: draw("auctions"),
            auction_delay: draw("auctions.delay"),
            bid_bits: draw("bids"),
            seller: hot("auctions.seller", size.persons()),
            bidder: hot("bids.bidder", size.bidders()),
            lot: hot("bids.auction", size.lots()),
            prices: (0..OCTAVES * STEPS)
                .map(|n| (100 * (STEPS + n % STEPS) << (n / STEPS)) / STEPS)
                .collect(),
        }
    }

    /// Appends the persons from `offset` up to `stop`.
    pub fn persons(&self, offset: u64, stop: u64, out: &mut Vec<Person>) {
        let size = &self.size;
        let mut due = Share::at(offset, size.duration_ms, size.persons());
        out.extend((offset..stop).map(|offset| {
            let bits = self.person_bits.bits(offset);
            Person {
                id: self.id(offset),
                time: self.time(due.next(), offset, &self.person_delay),
                person: offset * size.partitions + self.partition,
                name: part(bits, 0, 21, NAMES as u64) as u16,
                city: part(bits, 21, 21, CITIES.len() as u64) as u16,
                state: part(bits, 42, 21, STATES.len() as u64) as u16,
            }
        }));
    }

    /// Appends the auctions from `offset` up to `stop`.
    pub fn auctions(&self, offset: u64, stop: u64, out: &mut Vec<Auction>) {
        let size = &self.size;
        let people = size.persons();
        let mut due = Share::at(offset, size.duration_ms, size.records);
        let mut registered = Share::at(offset, people, size.records);
        out.extend((offset..stop).map(|offset| {
            let bits = self.auction_bits.bits(offset);
            let there = (registered.next() + 1) * size.partitions;
            let some = there - part(bits, 0, 21, there.min(ACTIVE) + 1);
            Auction {
                id: self.id(offset),
                time: self.time(due.next(), offset, &self.auction_delay),
                auction: offset * size.partitions + self.partition,
                seller: self.seller.instead(some.min(people * size.partitions - 1), offset),
                category: FIRST_CATEGORY + part(bits, 21, 11, CATEGORIES),
                reserve: self.price(bits, 32, 16) + self.price(bits, 48, 16),
            }
        }));
    }

    /// Appends the bids from `offset` up to `stop`.
    pub fn bids(&self, offset: u64, stop: u64, out: &mut Vec<Bid>) {
        let size = &self.size;
        let mut due = Share::at(offset, size.duration_ms, size.records);
        let mut opened = Share::at(offset, size.lots(), size.records);
        let mut registered = Share::at(offset, size.bidders(), size.records);
        out.extend((offset..stop).map(|offset| {
            let bits = self.bid_bits.bits(offset);
            let lots = (opened.next() + 1) * size.partitions;
            let people = (registered.next() + 1) * size.partitions;
            let auction = lots - 1 - part(bits, 24, 16, lots.min(IN_FLIGHT));
            let person = people - 1 - part(bits, 0, 24, people.min(ACTIVE));
            Bid {
                id: self.id(offset),
                time: due.next(),
                auction: self.lot.instead(auction, offset),
                bidder: self.bidder.instead(person, offset),
                price: self.price(bits, 40, 24),
            }
        }));
    }

    #[inline]
    fn price(&self, bits: u64, first: u32, width: u32) -> u64 {
        self.prices[part(bits, first, width, OCTAVES * STEPS) as usize]
    }

    #[inline]
    fn id(&self, offset: u64) -> u64 {
        (self.partition << PARTITION_BITS) + offset
    }

    #[inline]
    fn time(&self, due: u64, offset: u64, delay: &Draw) -> u64 {
        match self.size.disorder_ms {
            0 => due,
            disorder => due.saturating_sub(delay.at(offset, disorder + 1)),
        }
    }
}

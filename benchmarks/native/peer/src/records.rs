//! Persons, auctions and bids, and the words that persons are described by.

use serde::{Deserialize, Serialize};

pub const STATES: [&str; 6] = ["AZ", "CA", "ID", "OR", "WA", "WY"];
/// Of these, which q3 asks for: CA, ID and OR.
const LOCAL: [bool; 6] = [false, true, true, true, false, false];
pub const CITIES: [&str; 7] =
    ["Bend", "Boise", "Kent", "Palo Alto", "Phoenix", "Portland", "Redmond"];
const FIRST: [&str; 8] = ["Ada", "Deiter", "Edsger", "Grace", "Jaiden", "Kate", "Luke", "Vicky"];
const LAST: [&str; 7] = ["Abrams", "Bartels", "Noris", "Shultz", "Smith", "Walton", "White"];
pub const NAMES: usize = FIRST.len() * LAST.len();

/// Somebody bids.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Bid {
    pub id: u64,
    pub time: u64,
    pub auction: u64,
    pub bidder: u64,
    pub price: u64,
}

/// What a count needs of a bid.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct BidKey {
    pub bidder: u64,
    pub time: u64,
}

/// Somebody registers. Words are numbers: places in the tables above.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Person {
    pub id: u64,
    pub time: u64,
    pub person: u64,
    pub name: u16,
    pub city: u16,
    pub state: u16,
}

/// An auction opens.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Auction {
    pub id: u64,
    pub time: u64,
    pub auction: u64,
    pub seller: u64,
    pub category: u64,
    pub reserve: u64,
}

/// A row of q3 and q8.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Sale {
    pub time: u64,
    pub auction: u64,
    pub category: u64,
    pub reserve: u64,
    pub person: u64,
    pub name: u16,
    pub city: u16,
    pub state: u16,
}

impl Sale {
    #[inline]
    pub fn of(person: &Person, auction: &Auction) -> Sale {
        Sale {
            time: person.time.max(auction.time),
            auction: auction.auction,
            category: auction.category,
            reserve: auction.reserve,
            person: person.person,
            name: person.name,
            city: person.city,
            state: person.state,
        }
    }
}

/// What a sink counts: rows, and a sum over them; see benchmarks/common/checks.py.
#[derive(Clone, Copy, Default)]
pub struct Tally {
    pub count: u64,
    pub checksum: u64,
}

impl Tally {
    #[inline]
    pub fn add(&mut self, share: u64) {
        self.count += 1;
        self.checksum = self.checksum.wrapping_add(share);
    }

    pub fn with(self, other: Tally) -> Tally {
        Tally {
            count: self.count + other.count,
            checksum: self.checksum.wrapping_add(other.checksum),
        }
    }
}

/// A bid in euros.
#[inline]
pub fn in_euros(bid: &Bid) -> Bid {
    Bid { price: bid.price * 908 / 1000, ..*bid }
}

/// What a row of q1 adds to the checksum.
#[inline]
pub fn bid_share(bid: &Bid) -> u64 {
    bid.id + bid.price
}

/// What a row of q3 or q8 adds to it: `pair_hash` of benchmarks/common/checks.py.
#[inline]
pub fn sale_share(sale: &Sale) -> u64 {
    sale.person.wrapping_mul(0x9E3779B97F4A7C15) ^ sale.auction.wrapping_mul(0xD1B54A32D192ED03)
}

/// Who lives in one of the states of q3.
#[inline]
pub fn is_local(person: &Person) -> bool {
    LOCAL[person.state as usize]
}

/// What belongs to the category of q3.
#[inline]
pub fn is_wanted(auction: &Auction) -> bool {
    auction.category == crate::model::FIRST_CATEGORY
}

pub fn name(number: u16) -> String {
    let number = number as usize;
    format!("{} {}", FIRST[number / LAST.len()], LAST[number % LAST.len()])
}

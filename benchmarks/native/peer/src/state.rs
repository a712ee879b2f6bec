//! What the queries remember: a count per bidder and window, and the two sides of a join.

use crate::records::{Auction, BidKey, Person, Sale};

const SMALLEST: usize = 1 << 10;

/// A hash table with open addressing, from numbers below 2^64 - 1 to small values.
pub struct Table<V> {
    slots: Vec<(u64, V)>, // a key and one; 0 is an empty slot
    used: usize,
    shift: u32,
}

impl<V: Copy + Default> Table<V> {
    fn new() -> Table<V> {
        let shift = 64 - SMALLEST.trailing_zeros();
        Table { slots: vec![(0, V::default()); SMALLEST], used: 0, shift }
    }

    /// The value of a key; a default one at first.
    #[inline]
    fn at(&mut self, key: u64) -> &mut V {
        if self.used * 2 > self.slots.len() {
            self.grow();
        }
        let place = self.place(key + 1);
        let slot = &mut self.slots[place];
        if slot.0 == 0 {
            slot.0 = key + 1;
            self.used += 1;
        }
        &mut slot.1
    }

    #[inline]
    fn place(&self, marked: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut place = (marked.wrapping_mul(0x9E3779B97F4A7C15) >> self.shift) as usize;
        while self.slots[place].0 != marked && self.slots[place].0 != 0 {
            place = (place + 1) & mask;
        }
        place
    }

    #[cold]
    fn grow(&mut self) {
        let larger = vec![(0, V::default()); self.slots.len() * 2];
        let before = std::mem::replace(&mut self.slots, larger);
        self.shift -= 1;
        for slot in before.into_iter().filter(|slot| slot.0 != 0) {
            let place = self.place(slot.0);
            self.slots[place] = slot;
        }
    }

    fn filled(&self) -> impl Iterator<Item = (u64, V)> + '_ {
        self.slots.iter().filter(|slot| slot.0 != 0).map(|slot| (slot.0 - 1, slot.1))
    }
}

/// A window that is open: what is not earlier than `start` and earlier than `stop`.
struct Window<W> {
    start: u64,
    stop: u64,
    held: W,
}

/// Windows that are open, few at a time. A length of 0 is one window, for ever.
struct Windows<W> {
    length_ms: u64,
    open: Vec<Window<W>>,
}

impl<W> Windows<W> {
    #[inline]
    fn of(&mut self, time: u64, make: fn() -> W) -> &mut W {
        match self.open.iter().rposition(|it| it.start <= time && time < it.stop) {
            Some(at) => &mut self.open[at].held,
            None => self.add(time, make()),
        }
    }

    #[cold]
    fn add(&mut self, time: u64, held: W) -> &mut W {
        let (start, stop) = match self.length_ms {
            0 => (0, u64::MAX),
            length => (time - time % length, time - time % length + length),
        };
        self.open.push(Window { start, stop, held });
        &mut self.open.last_mut().unwrap().held
    }

    fn close(&mut self, watermark: u64) {
        if self.length_ms > 0 {
            self.open.retain(|it| it.stop > watermark);
        }
    }
}

/// The counts of q12.
pub struct Counts {
    windows: Windows<Table<u64>>,
}

impl Counts {
    pub fn new(length_ms: u64) -> Counts {
        Counts { windows: Windows { length_ms, open: Vec::new() } }
    }

    /// How many bids this one makes for its bidder in its window.
    #[inline]
    pub fn count(&mut self, bid: &BidKey) -> u64 {
        let count = self.windows.of(bid.time, Table::new).at(bid.bidder);
        *count += 1;
        *count
    }

    pub fn close(&mut self, watermark: u64) {
        self.windows.close(watermark);
    }

    /// Appends all counts.
    pub fn save(&self, out: &mut Vec<u8>) {
        for window in &self.windows.open {
            for (bidder, count) in window.held.filled() {
                put(out, [window.start, bidder, count]);
            }
        }
    }
}

/// Where the rows of a key are, each a place and one: its person, and its latest auction.
#[derive(Clone, Copy, Default)]
struct Rows {
    person: u32,
    auction: u32,
}

struct Sides {
    rows: Table<Rows>,
    persons: Vec<Person>,
    auctions: Vec<Auction>,
    earlier: Vec<u32>, // of each auction: the one before it with the same seller
    saved: (usize, usize),
}

impl Sides {
    fn new() -> Sides {
        let (persons, auctions, earlier) = (Vec::new(), Vec::new(), Vec::new());
        Sides { rows: Table::new(), persons, auctions, earlier, saved: (0, 0) }
    }
}

/// The join of q3 (for ever) and q8 (within windows).
pub struct Join {
    windows: Windows<Sides>,
}

impl Join {
    pub fn new(length_ms: u64) -> Join {
        Join { windows: Windows { length_ms, open: Vec::new() } }
    }

    #[inline]
    pub fn person(&mut self, person: &Person, mut give: impl FnMut(Sale)) {
        let sides = self.windows.of(person.time, Sides::new);
        sides.persons.push(*person);
        let rows = sides.rows.at(person.person);
        rows.person = sides.persons.len() as u32;
        let mut next = rows.auction as usize;
        while next != 0 {
            give(Sale::of(person, &sides.auctions[next - 1]));
            next = sides.earlier[next - 1] as usize;
        }
    }

    #[inline]
    pub fn auction(&mut self, auction: &Auction, mut give: impl FnMut(Sale)) {
        let sides = self.windows.of(auction.time, Sides::new);
        sides.auctions.push(*auction);
        let rows = sides.rows.at(auction.seller);
        sides.earlier.push(rows.auction);
        rows.auction = sides.auctions.len() as u32;
        if rows.person != 0 {
            give(Sale::of(&sides.persons[rows.person as usize - 1], auction));
        }
    }

    pub fn close(&mut self, watermark: u64) {
        self.windows.close(watermark);
    }

    /// Appends the rows that have come since the last call.
    pub fn save(&mut self, out: &mut Vec<u8>) {
        for window in &mut self.windows.open {
            let (start, sides) = (window.start, &mut window.held);
            for it in &sides.persons[sides.saved.0..] {
                let words = u64::from(it.name) | u64::from(it.city) << 16 | u64::from(it.state) << 32;
                put(out, [start, it.id, it.time, it.person, words]);
            }
            for it in &sides.auctions[sides.saved.1..] {
                put(out, [start, it.id, it.time, it.auction]);
                put(out, [it.seller, it.category, it.reserve]);
            }
            sides.saved = (sides.persons.len(), sides.auctions.len());
        }
    }
}

/// Appends numbers.
#[inline]
pub fn put<const N: usize>(out: &mut Vec<u8>, words: [u64; N]) {
    out.extend_from_slice(words.map(u64::to_le_bytes).as_flattened());
}

/// Which worker has a key.
#[inline]
pub fn owner(key: u64, workers: u64) -> u64 {
    let hash = key.wrapping_mul(0xD6E8FEB86659FD93) >> 32;
    hash * workers >> 32
}

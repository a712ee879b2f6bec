//! One field of one partition, as numbers that depend on (seed, field, partition, offset) alone: the
//! functions `draw` and `draw_bits` of snapline/workload/common/generated.py.

const GOLDEN: u64 = 0x9E3779B97F4A7C15;

/// The numbers of a field.
#[derive(Clone, Copy)]
pub struct Draw {
    start: u64,
}

impl Draw {
    pub fn new(seed: u64, field: &str, partition: u64) -> Draw {
        let first = mix(seed.wrapping_mul(GOLDEN).wrapping_add(crc32(field.as_bytes())));
        Draw { start: mix(first.wrapping_add(partition)) }
    }

    /// Evenly distributed in [0, below).
    pub fn at(&self, offset: u64, below: u64) -> u64 {
        self.bits(offset) % below
    }

    /// 64 even bits.
    #[inline]
    pub fn bits(&self, offset: u64) -> u64 {
        mix(self.start.wrapping_add(offset.wrapping_mul(GOLDEN)))
    }
}

/// Evenly distributed in [0, below), from some of those bits.
#[inline]
pub fn part(bits: u64, first: u32, width: u32, below: u64) -> u64 {
    ((bits >> first) & ((1 << width) - 1)) * below >> width
}

/// How much of a whole has passed at an offset, if it passes evenly in so many records. One division
/// for the first offset, none for those that follow.
pub struct Share {
    whole: u64,
    rest: u64,
    records: u64,
    step: (u64, u64),
}

impl Share {
    pub fn at(offset: u64, whole: u64, records: u64) -> Share {
        let passed = offset * whole;
        let step = (whole / records, whole % records);
        Share { whole: passed / records, rest: passed % records, records, step }
    }

    /// The share at the present offset; goes on to the next.
    #[inline]
    pub fn next(&mut self) -> u64 {
        let now = self.whole;
        self.whole += self.step.0;
        self.rest += self.step.1;
        if self.rest >= self.records {
            self.rest -= self.records;
            self.whole += 1;
        }
        now
    }
}

/// The finaliser of splitmix64.
#[inline]
fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(GOLDEN);
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58476D1CE4E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D049BB133111EB);
    word ^ (word >> 31)
}

fn crc32(bytes: &[u8]) -> u64 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xEDB88320 & (crc & 1).wrapping_neg());
        }
    }
    u64::from(!crc)
}

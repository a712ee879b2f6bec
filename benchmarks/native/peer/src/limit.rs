//! The native limit: a thread a partition, which makes its records, passes them on by key, and has the
//! state of its share of the keys. There is no engine: each query is a few loops over blocks.
//!
//! With snapshots, all threads mark the same moment in what they send (aligned markers), append what has
//! changed to a buffer when the marks of all others have come, and go on; a thread beside each writes the
//! buffer to a file and waits for the disk. A round begins when it is time and the last one is durable.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{channel, sync_channel, Receiver, Sender, SyncSender, TrySendError};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::options::Options;
use crate::records::{
    bid_share, in_euros, is_local, is_wanted, sale_share, Auction, Bid, BidKey, Person, Tally,
};
use crate::source::Source;
use crate::state::{owner, put, Counts, Join};

/// Blocks that may wait for a thread.
const DEPTH: usize = 16;

/// Rows of a block, at most.
const ROOM: usize = 1_024;

/// Some rows for one thread; of a query, one or two of the lists are used.
#[derive(Default)]
struct Block {
    bids: Vec<Bid>,
    keys: Vec<BidKey>,
    persons: Vec<Person>,
    auctions: Vec<Auction>,
}

impl Block {
    /// An empty block with room for what a block of input may bring.
    fn for_query(query: &str) -> Block {
        let mut block = Block::default();
        match query {
            "q1" => {}
            "q12" => block.keys.reserve(ROOM),
            _ => {
                block.persons.reserve(ROOM / 4);
                block.auctions.reserve(ROOM);
            }
        }
        block
    }
}

enum Said {
    Rows(Block, u64), // with the sender's watermark
    Marker(u64),
    End,
}

struct Message {
    from: usize,
    said: Said,
}

enum State {
    Euros,
    Counts(Counts),
    Join(Join),
}

impl State {
    fn of(options: &Options) -> State {
        match options.query.as_str() {
            "q1" => State::Euros,
            "q12" => State::Counts(Counts::new(options.window_ms)),
            _ => State::Join(Join::new(options.window_ms)),
        }
    }

    fn take(&mut self, block: &Block, tally: &mut Tally) {
        match self {
            State::Euros => {
                for bid in &block.bids {
                    tally.add(bid_share(&in_euros(bid)));
                }
            }
            State::Counts(counts) => {
                for key in &block.keys {
                    tally.add(counts.count(key));
                }
            }
            State::Join(join) => {
                for person in &block.persons {
                    join.person(person, |sale| tally.add(sale_share(&sale)));
                }
                for auction in &block.auctions {
                    join.auction(auction, |sale| tally.add(sale_share(&sale)));
                }
            }
        }
    }

    fn close(&mut self, watermark: u64) {
        match self {
            State::Euros => {}
            State::Counts(counts) => counts.close(watermark),
            State::Join(join) => join.close(watermark),
        }
    }

    fn save(&mut self, out: &mut Vec<u8>) {
        match self {
            State::Euros => {}
            State::Counts(counts) => counts.save(out),
            State::Join(join) => join.save(out),
        }
    }
}

/// The rounds of snapshots, as all threads see them.
#[derive(Default)]
struct Rounds {
    asked: AtomicU64,   // the last one that was begun
    durable: AtomicU64, // files that were synced
    over: AtomicBool,
}

struct Worker {
    me: usize,
    query: String,
    source: Source,
    state: State,
    tally: Tally,
    to: Vec<SyncSender<Message>>,
    inbox: Receiver<Message>,
    watermarks: Vec<u64>,
    marked: Vec<u64>, // the last round that each thread has marked
    rounds: Arc<Rounds>,
    files: Sender<Vec<u8>>,
    spare: Receiver<Vec<u8>>, // buffers that were written
}

impl Worker {
    fn run(mut self) -> Tally {
        let mut bids = Vec::new();
        while !self.source.at_end() {
            self.read(&mut bids);
            while let Ok(message) = self.inbox.try_recv() {
                self.receive(message);
            }
            if self.rounds.asked.load(SeqCst) > self.marked[self.me] {
                self.snapshot();
            }
        }
        self.tell_all(|| Said::End);
        self.note_end(self.me);
        while self.marked.iter().any(|round| *round < u64::MAX) {
            let message = self.inbox.recv().expect("all others end with a word");
            self.receive(message);
        }
        self.tally
    }

    /// Makes the next block of records, keeps what is ours, and sends the rest.
    fn read(&mut self, bids: &mut Vec<Bid>) {
        let workers = self.to.len();
        let mut blocks: Vec<Block> = (0..workers).map(|_| Block::for_query(&self.query)).collect();
        match self.query.as_str() {
            "q1" => {
                bids.clear();
                self.source.bids(bids);
                std::mem::swap(&mut blocks[self.me].bids, bids);
            }
            "q12" => {
                bids.clear();
                self.source.bids(bids);
                for bid in bids.iter() {
                    let to = owner(bid.bidder, workers as u64) as usize;
                    blocks[to].keys.push(BidKey { bidder: bid.bidder, time: bid.time });
                }
            }
            _ => self.read_events(&mut blocks),
        }
        let watermark = self.source.watermark();
        for (to, block) in blocks.into_iter().enumerate() {
            if to == self.me {
                self.state.take(&block, &mut self.tally);
                if self.query == "q1" {
                    *bids = block.bids;
                }
            } else if self.query != "q1" {
                self.tell(to, Said::Rows(block, watermark));
            }
        }
        self.advance(self.me, watermark);
    }

    fn read_events(&mut self, blocks: &mut [Block]) {
        let (mut persons, mut auctions) = (Vec::new(), Vec::new());
        self.source.events(&mut persons, &mut auctions);
        let (workers, all) = (blocks.len() as u64, self.query == "q8");
        for person in persons.iter().filter(|it| all || is_local(it)) {
            blocks[owner(person.person, workers) as usize].persons.push(*person);
        }
        for auction in auctions.iter().filter(|it| all || is_wanted(it)) {
            blocks[owner(auction.seller, workers) as usize].auctions.push(*auction);
        }
    }

    /// Sends, and receives as long as there is no room.
    fn tell(&mut self, to: usize, said: Said) {
        let mut message = Message { from: self.me, said };
        while let Err(TrySendError::Full(back)) = self.to[to].try_send(message) {
            message = back;
            match self.inbox.try_recv() {
                Ok(received) => self.receive(received),
                Err(_) => thread::yield_now(),
            }
        }
    }

    fn tell_all(&mut self, said: fn() -> Said) {
        for to in (0..self.to.len()).filter(|to| *to != self.me).collect::<Vec<_>>() {
            self.tell(to, said());
        }
    }

    fn receive(&mut self, message: Message) {
        match message.said {
            Said::Rows(block, watermark) => {
                self.state.take(&block, &mut self.tally);
                self.advance(message.from, watermark);
            }
            Said::Marker(round) => self.marked[message.from] = round,
            Said::End => self.note_end(message.from),
        }
    }

    /// A thread has sent all: it is not waited for any more.
    fn note_end(&mut self, who: usize) {
        self.marked[who] = u64::MAX;
        self.advance(who, u64::MAX);
    }

    fn advance(&mut self, from: usize, watermark: u64) {
        self.watermarks[from] = watermark;
        self.state.close(*self.watermarks.iter().min().unwrap());
    }

    /// Marks the moment, waits for the marks of all others, and captures what has changed.
    ///
    /// What comes behind the mark of one while that of another is awaited would have to wait, too; with two
    /// threads there is but one to wait for.
    fn snapshot(&mut self) {
        let round = self.marked[self.me] + 1;
        self.marked[self.me] = round;
        for to in (0..self.to.len()).filter(|to| *to != self.me).collect::<Vec<_>>() {
            self.tell(to, Said::Marker(round));
        }
        while self.marked.iter().any(|marked| *marked < round) {
            let message = self.inbox.recv().expect("all others mark the moment, too");
            self.receive(message);
        }
        let mut bytes = self.spare.try_recv().unwrap_or_default();
        bytes.clear();
        put(&mut bytes, [round, self.tally.count, self.tally.checksum, self.source.offset()]);
        self.state.save(&mut bytes);
        self.files.send(bytes).expect("the thread beside lives");
    }
}

/// Writes every buffer to a file of its own, waits for the disk, and gives the buffer back.
fn write_files(
    directory: &Path,
    me: usize,
    buffers: &Receiver<Vec<u8>>,
    spare: &Sender<Vec<u8>>,
    rounds: &Rounds,
) {
    for (number, bytes) in buffers.iter().enumerate() {
        let mut file = File::create(directory.join(format!("{me}-{number}"))).expect("a file");
        file.write_all(&bytes).expect("room on the disk");
        file.sync_all().expect("a disk that syncs");
        rounds.durable.fetch_add(1, SeqCst);
        let _ = spare.send(bytes); // the thread may be at its end
    }
}

/// Begins a round when it is time and the last one is durable.
fn keep_time(every: Duration, workers: u64, rounds: &Rounds) {
    let mut next = Instant::now() + every;
    while !rounds.over.load(SeqCst) {
        thread::sleep(Duration::from_millis(5));
        let asked = rounds.asked.load(SeqCst);
        if Instant::now() >= next && rounds.durable.load(SeqCst) >= asked * workers {
            rounds.asked.store(asked + 1, SeqCst);
            next = Instant::now() + every;
        }
    }
}

/// What a run has given: its tally, how long it took, and the rounds that became durable.
pub fn run(options: &Options) -> (Tally, Duration, u64) {
    let workers = options.size.partitions as usize;
    let rounds = Arc::new(Rounds::default());
    let (senders, inboxes): (Vec<_>, Vec<_>) = (0..workers).map(|_| sync_channel(DEPTH)).unzip();
    let mut beside = Vec::new();
    let mut threads = Vec::new();
    let began = Instant::now();
    for (me, inbox) in inboxes.into_iter().enumerate() {
        let (files, buffers) = channel();
        let (back, spare) = channel();
        let (directory, shared) = (options.directory.clone(), rounds.clone());
        beside.push(thread::spawn(move || write_files(&directory, me, &buffers, &back, &shared)));
        let worker = Worker {
            me,
            query: options.query.clone(),
            source: Source::new(options.size, me as u64, options.reads_bids()),
            state: State::of(options),
            tally: Tally::default(),
            to: senders.clone(),
            inbox,
            watermarks: vec![0; workers],
            marked: vec![0; workers],
            rounds: rounds.clone(),
            files,
            spare,
        };
        threads.push(thread::spawn(move || worker.run()));
    }
    drop(senders);
    if options.snapshot_ms > 0 {
        let (every, shared) = (Duration::from_millis(options.snapshot_ms), rounds.clone());
        beside.push(thread::spawn(move || keep_time(every, workers as u64, &shared)));
    }
    let tally = threads
        .into_iter()
        .map(|thread| thread.join().expect("no thread fails"))
        .fold(Tally::default(), Tally::with);
    let took = began.elapsed();
    rounds.over.store(true, SeqCst);
    for thread in beside {
        thread.join().expect("no thread fails");
    }
    (tally, took, rounds.durable.load(SeqCst) / workers as u64)
}

//! The same queries in timely dataflow: a worker a partition, no checkpoints.
//!
//! Times of the dataflow are numbers of windows: an input advances when its watermark enters the next
//! window, so that progress costs nothing to speak of, and a window is dropped when the frontier has left it.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use timely::dataflow::channels::pact::{Exchange, Pipeline};
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::vec::{Filter, Map};
use timely::dataflow::operators::Input;
use timely::dataflow::{InputHandle, StreamVec};
use timely::progress::frontier::MutableAntichain;
use timely::worker::Worker;

use crate::options::Options;
use crate::records::{
    bid_share, in_euros, is_local, is_wanted, sale_share, Auction, Bid, BidKey, Person, Tally,
};
use crate::source::Source;
use crate::state::{owner, Counts, Join};

/// What a run has given: its tally, and how long it took.
pub fn run(options: &Options) -> (Tally, Duration) {
    let began = Instant::now();
    let asked = options.clone();
    let workers = options.size.partitions as usize;
    let guards = timely::execute(timely::Config::process(workers), move |worker| {
        match asked.query.as_str() {
            "q1" | "q12" => run_bids(worker, &asked),
            _ => run_events(worker, &asked),
        }
    });
    let tally = guards
        .expect("workers start")
        .join()
        .into_iter()
        .map(|found| found.expect("no worker fails"))
        .fold(Tally::default(), Tally::with);
    (tally, began.elapsed())
}

fn run_bids(worker: &mut Worker, options: &Options) -> Tally {
    let tally = Rc::new(Cell::new(Tally::default()));
    let mut input = InputHandle::new();
    worker.dataflow::<u64, _, _>(|scope| {
        let bids = scope.input_from(&mut input);
        match options.query.as_str() {
            "q1" => sink(bids.map(|bid: Bid| in_euros(&bid)), bid_share, &tally),
            _ => sink(counts(bids, options), |count| *count, &tally),
        }
    });
    let mut source = Source::new(options.size, worker.index() as u64, true);
    let mut bids: Vec<Bid> = Vec::new();
    while !source.at_end() {
        source.bids(&mut bids);
        input.send_batch(&mut bids);
        bids.clear();
        if !source.at_end() {
            input.advance_to(window(source.watermark(), options));
        }
        worker.step();
    }
    input.close();
    while worker.step() {}
    tally.get()
}

fn run_events(worker: &mut Worker, options: &Options) -> Tally {
    let tally = Rc::new(Cell::new(Tally::default()));
    let (mut people, mut lots) = (InputHandle::new(), InputHandle::new());
    worker.dataflow::<u64, _, _>(|scope| {
        let mut persons = scope.input_from(&mut people);
        let mut auctions = scope.input_from(&mut lots);
        if options.query == "q3" {
            persons = persons.filter(is_local);
            auctions = auctions.filter(is_wanted);
        }
        sink(join(persons, auctions, options), sale_share, &tally);
    });
    let mut source = Source::new(options.size, worker.index() as u64, false);
    let (mut persons, mut auctions) = (Vec::new(), Vec::new());
    while !source.at_end() {
        source.events(&mut persons, &mut auctions);
        people.send_batch(&mut persons);
        lots.send_batch(&mut auctions);
        persons.clear();
        auctions.clear();
        if !source.at_end() {
            let now = window(source.watermark(), options);
            people.advance_to(now);
            lots.advance_to(now);
        }
        worker.step();
    }
    people.close();
    lots.close();
    while worker.step() {}
    tally.get()
}

fn window(watermark: u64, options: &Options) -> u64 {
    match options.window_ms {
        0 => 0,
        length_ms => watermark / length_ms,
    }
}

/// No record is earlier than the first window that may still come.
fn open_from(frontiers: &[&MutableAntichain<u64>], length_ms: u64) -> u64 {
    let first = frontiers.iter().filter_map(|it| it.frontier().first().copied()).min();
    first.map_or(u64::MAX, |number| number * length_ms)
}

fn counts<'scope>(
    bids: StreamVec<'scope, u64, Bid>,
    options: &Options,
) -> StreamVec<'scope, u64, u64> {
    let (workers, length_ms) = (options.size.partitions, options.window_ms);
    bids.map(|bid| BidKey { bidder: bid.bidder, time: bid.time }).unary_frontier(
        Exchange::new(move |key: &BidKey| owner(key.bidder, workers)),
        "count",
        |_, _| {
            let mut counts = Counts::new(length_ms);
            move |(input, frontier), output| {
                input.for_each_time(|time, data| {
                    let mut session = output.session(&time);
                    for keys in data {
                        for key in keys.drain(..) {
                            session.give(counts.count(&key));
                        }
                    }
                });
                counts.close(open_from(&[frontier], length_ms));
            }
        },
    )
}

fn join<'scope>(
    persons: StreamVec<'scope, u64, Person>,
    auctions: StreamVec<'scope, u64, Auction>,
    options: &Options,
) -> StreamVec<'scope, u64, crate::records::Sale> {
    let (workers, length_ms) = (options.size.partitions, options.window_ms);
    persons.binary_frontier(
        auctions,
        Exchange::new(move |person: &Person| owner(person.person, workers)),
        Exchange::new(move |auction: &Auction| owner(auction.seller, workers)),
        "join",
        |_, _| {
            let mut join = Join::new(length_ms);
            move |(left, left_frontier), (right, right_frontier), output| {
                left.for_each_time(|time, data| {
                    let mut session = output.session(&time);
                    for person in data.flat_map(|some| some.drain(..)) {
                        join.person(&person, |sale| session.give(sale));
                    }
                });
                right.for_each_time(|time, data| {
                    let mut session = output.session(&time);
                    for auction in data.flat_map(|some| some.drain(..)) {
                        join.auction(&auction, |sale| session.give(sale));
                    }
                });
                join.close(open_from(&[left_frontier, right_frontier], length_ms));
            }
        },
    )
}

fn sink<D: 'static>(
    rows: StreamVec<'_, u64, D>,
    share: impl Fn(&D) -> u64 + 'static,
    tally: &Rc<Cell<Tally>>,
) {
    let tally = tally.clone();
    rows.sink(Pipeline, "tally", move |(input, _)| {
        input.for_each(|_, data| {
            let mut now = tally.get();
            for row in data.drain(..) {
                now.add(share(&row));
            }
            tally.set(now);
        });
    });
}

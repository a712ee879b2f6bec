"""The oracles of tables and of counts in their plainest form: what the fast ones must say.

Slow, and easy to believe: everything is a Python row, and nothing is ever left out.
"""

from collections import Counter
from functools import partial

from snapline.wording import plural
from snapline.workload.abs.model import unpacked
from snapline.workload.common.generated import label
from snapline.workload.counting.model import records
from snapline.workload.nexmark import model, oracle
from snapline.workload.oracles.verdict import Problems, judge_rows, rows_of


def judge_counts(findings, inputs, rows, describe):
    """Hold running counts (key, count, time) against the records (time, name) of each key."""
    counts = {}
    for key, count, _ in rows:
        counts.setdefault(key, Counter())[count] += 1
    for key, here in inputs.items():
        judge_key(findings, describe(key), len(here), counts.get(key, Counter()))
    names = {}
    for key, here in inputs.items():
        for time, name in here:
            names.setdefault((key, time), []).append(name)
    found = Counter((key, time) for key, _, time in rows)
    for (key, time), here in names.items():
        counted, came = found[key, time], len(here)
        because = f"counted {plural(counted, 'time')} in the {describe(key)}, {came} came"
        if counted < came:
            findings.lack("missing", " or ".join(here), because)
        elif counted > came:
            findings.excess("duplicate", " or ".join(here), because)
    for key, time in found:
        if (key, time) not in names:
            findings.excess("invented", f"{describe(key)} at {time} ms", "no such record came")


def judge_key(findings, key, true, counts):
    highest = max(counts, default=0)
    if highest < true:
        findings.lack("missing", key, f"it ends at {highest}; {plural(true, 'record')} came")
    for number, copies in sorted(counts.items()):
        if not 1 <= number <= true:
            findings.excess(
                "wrong", key, f"it has the count {number}; {plural(true, 'record')} came"
            )
        elif copies > 1:
            findings.excess("duplicate", key, f"the count {number} came out {copies} times")


def counting(params, found, level):
    inputs = {}
    for key, time, record in rows_of(records(params).everything(), "key", "time", "id"):
        inputs.setdefault(key, []).append((time, label("record", record)))
    findings = Problems(level)
    rows = rows_of(found, "key", "count", "time")
    judge_counts(findings, inputs, rows, lambda key: f"count of key {key}")
    return findings.problems


def q1(params, found, level):
    columns = ("id", "auction", "bidder", "price", "time")
    expected = {
        bid: (auction, bidder, price * oracle.EUROS_PER_1000_DOLLARS // 1000, time)
        for bid, auction, bidder, price, time in rows_of(model.bids(params).everything(), *columns)
    }
    findings = Problems(level)
    rows = [(row[0], row[1:]) for row in rows_of(found, *columns)]
    judge_rows(findings, expected, rows, lambda bid: label("bid", bid))
    return findings.problems


LOT = ("id", "time", "seller", "category", "reserve")
PERSON = ("name", "city", "state")


def shown(found, always):
    """What the query is about, and all else that came out with it."""
    others = (*LOT, *PERSON, "id_right", "time_right")
    return (*always, *(n for n in others if n in found.columns and n not in always))


def facts(source):
    """The records of a source as dictionaries."""
    batch = source.everything()
    return [dict(zip(batch.columns, row, strict=True)) for row in batch.rows()]


def sale(lot, person, window=None):
    """All columns of a pair."""
    right = {"id_right": person["id"], "time_right": person["time"], "window": window}
    return {**{name: person[name] for name in PERSON}, **{n: lot[n] for n in LOT}, **right}


def q3(params, found, level):
    people = {p["person"]: p for p in facts(model.persons(params))}
    values = shown(found, ("name", "city", "state"))
    expected = {}
    for lot in facts(model.auctions(params)):
        person = people.get(lot["seller"])
        wanted = lot["category"] == oracle.CATEGORY
        if wanted and person and person["state"] in oracle.LOCAL_STATES:
            whole = sale(lot, person)
            expected[lot["auction"], lot["seller"]] = tuple(whole[name] for name in values)
    return pairs(expected, rows_of(found, "auction", "person", *values), level)


def q8(params, found, level):
    length = oracle.window_ms(params)
    registered = {
        (p["person"], p["time"] - p["time"] % length): p
        for p in facts(model.persons(params, oracle.DISORDER_MS))
    }
    values = shown(found, ("name", "reserve", "window"))
    expected = {}
    for lot in facts(model.auctions(params, oracle.DISORDER_MS)):
        window = lot["time"] - lot["time"] % length
        if (lot["seller"], window) in registered:
            whole = sale(lot, registered[lot["seller"], window], window)
            expected[lot["auction"], lot["seller"]] = tuple(whole[name] for name in values)
    return pairs(expected, rows_of(found, "auction", "person", *values), level)


def pairs(expected, rows, level):
    findings = Problems(level)
    found = [((row[0], row[1]), row[2:]) for row in rows]
    judge_rows(findings, expected, found, lambda p: f"auction {p[0]} with person {p[1]}")
    return findings.problems


def q12(params, found, level):
    length = oracle.window_ms(params)
    inputs = {}
    for bid, bidder, time in rows_of(model.bids(params).everything(), "id", "bidder", "time"):
        inputs.setdefault((bidder, time - time % length), []).append((time, label("bid", bid)))
    rows = rows_of(found, "bidder", "window", "count", "time")
    counts = [((bidder, window), count, time) for bidder, window, count, time in rows]
    findings = Problems(level)
    judge_counts(findings, inputs, counts, lambda k: f"count of bidder {k[0]} in window {k[1]}")
    return findings.problems


def abs_(params, found, level):
    keys = ("first", "second", "third")
    records = rows_of(unpacked(params).everything(), "id", "time", *keys)
    findings = Problems(level)
    rows = [(row[0], row[1:]) for row in rows_of(found, "id", "time", *keys)]
    judge_rows(findings, {row[0]: row[1:] for row in records}, rows, partial(label, "record"))
    for at, key in enumerate(keys, start=2):
        true = Counter(row[at] for row in records)
        counts = {}
        for here, count in rows_of(found, key, f"{key}_count"):
            counts.setdefault(here, Counter())[count] += 1
        for here in true:
            name = f"count of {key} key {here}"
            judge_key(findings, name, true[here], counts.get(here, Counter()))
    return findings.problems


PLAIN = {"counting": counting, "q1": q1, "q3": q3, "q8": q8, "q12": q12, "abs": abs_}

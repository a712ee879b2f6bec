"""The rules of `causes`, one record after the other, with dictionaries; and tables full of nonsense."""

from collections import Counter, defaultdict

from snapline.batch import Batch, Varlen
from snapline.validate.causes import OF_A_WINDOW, Cause
from snapline.validate.judged import Judged, Unjudged, Witness

SIZE_MS = 100


def plain_judge(inputs, outputs, late, size_ms=SIZE_MS, marks=None, lateness_ms=0, until_ms=None):
    """Judge rows: events (id, time, resource, post), outputs (position, resource, window, gets, get ids,
    posts, post ids), late (position, id). `marks` has the watermarks of events, by id."""
    events = {
        id: (resource, time // size_ms * size_ms, post) for id, time, resource, post in inputs
    }
    marks = {
        id: mark
        for id, mark in (marks or {}).items()
        if events[id][1] + size_ms + lateness_ms > mark  # else it may be late
    }
    found = [  # (cause, resource, window, id, position, other)
        row for output in outputs for row in [cause_of(output, events, outputs)] if row is not None
    ]
    occurs, rightly, soundly = Counter(), defaultdict(list), Counter()
    for position, resource, window, gets, get_ids, posts, post_ids in outputs:
        for id, post in [(id, False) for id in get_ids] + [(id, True) for id in post_ids]:
            occurs[id] += 1
            if events.get(id) == (resource, window, post):
                rightly[id].append(position)
                soundly[id] += (gets, posts) == (len(get_ids), len(post_ids))
    found += of_late(late, events, rightly, marks)
    lates = Counter(id for _, id in late)
    split = dict(split_places(events, outputs, lates))
    found += split.values()
    lost = [id for id in events if not occurs[id] and not lates[id]]
    found += of_lost(lost, events, outputs)
    reliable = {
        id
        for id in events
        if occurs[id] + lates[id] == 1 == soundly[id] + lates[id]
        and (id not in marks if lates[id] else events[id][:2] not in split)
    }

    def judged(window):
        return until_ms is None or window is None or window + size_ms <= until_ms

    found = [row for row in found if judged(row[2])]
    ids = [id for id in events if judged(events[id][1])]
    rest = [events[id][1] for id in events if id not in ids]
    causes = Counter(row[0] for row in found)
    witnesses = {row[0]: Witness(*row) for row in sorted(found, key=rank, reverse=True)}
    return Judged(
        inputs=len(ids),
        outputs=sum(judged(row[2]) for row in outputs),
        late=sum(id not in events or id in ids for _, id in late),
        lost=sum(id in lost for id in ids),
        repeated=sum(occurs[id] + lates[id] > 1 for id in ids),
        reliable=sum(id in reliable for id in ids),
        counted=sum(bool(rightly[id]) for id in ids),
        late_events=sum(lates[id] > 0 for id in ids),
        causes=dict(causes),
        witnesses=witnesses,
        unjudged=Unjudged(len(rest), len(set(rest))),
    )


def rank(row):
    """What is None comes last."""
    _, resource, window, id, position, _ = row
    return [
        (value is None, value if value is not None else 0)
        for value in (window, resource, position, id)
    ]


def cause_of(output, events, outputs):
    position, resource, window, gets, get_ids, posts, post_ids = output
    claims = [(id, False) for id in get_ids] + [(id, True) for id in post_ids]

    def finding(cause, ids, other=None):
        return (cause, resource, window, min(ids, default=None), position, other)

    def window_of(ids):
        return events[min(ids)][1]

    unknown = [id for id, _ in claims if id not in events]
    if unknown or not claims:
        return finding(Cause.INVENTED, unknown)
    wrong = [id for id, post in claims if events[id] != (resource, window, post)]
    windows = {events[id][1] for id, _ in claims}
    own = all(events[id][0] == resource and events[id][2] == post for id, post in claims)
    if own and len(windows) == 1 and windows != {window}:
        return finding(Cause.WRONG_WINDOW, wrong, window_of(wrong))
    for one, other in ((False, True), (True, False)):
        first = {events[id] for id, post in claims if post == one}
        second = {events[id] for id, post in claims if post == other}
        elsewhere = len(second) == 1 and second != {(resource, window, other)}
        if first == {(resource, window, one)} and elsewhere and next(iter(second))[2] == other:
            return finding(Cause.WRONG_PAIR, wrong, window_of(wrong))
    if wrong:
        return finding(Cause.MISPLACED, wrong, window_of(wrong))
    ids = [id for id, _ in claims]
    if len(set(ids)) < len(ids):
        return finding(Cause.TWICE_INSIDE, [id for id in ids if ids.count(id) > 1])
    if (gets, posts) != (len(get_ids), len(post_ids)):
        return finding(Cause.WRONG_VALUE, ids)
    peers = [row for row in outputs if row[1:3] == (resource, window) and row[0] < position]
    again = [id for id in ids if any(id in row[4] + row[6] for row in peers)]
    if again:
        first = min(row[0] for row in peers if min(again) in row[4] + row[6])
        return finding(Cause.DUPLICATE, again, first)
    return None


def split_places(events, outputs, lates):
    """Of each (resource, window) of which no output has all the events that were counted there."""
    parts = defaultdict(list)  # the outputs of each place that count some, in order
    for position, resource, window, _, get_ids, _, post_ids in sorted(outputs, key=lambda o: o[0]):
        claims = [(id, False) for id in get_ids] + [(id, True) for id in post_ids]
        mine = {
            id
            for id, post in claims
            if events.get(id) == (resource, window, post) and not lates[id]
        }
        if mine:
            parts[resource, window].append((position, mine))
    for place, rows in parts.items():
        lacks = set().union(*(mine for _, mine in rows)) - rows[0][1]
        if lacks and not any(mine >= lacks | rows[0][1] for _, mine in rows):
            other = next(position for position, mine in rows if min(lacks) in mine)
            yield place, (Cause.SPLIT, *place, min(lacks), rows[0][0], other)


def of_late(late, events, rightly, marks):
    positions = defaultdict(list)
    for position, id in sorted(late):
        positions[id].append(position)
    for id, places in positions.items():
        if id not in events:
            yield from ((Cause.INVENTED, None, None, id, position, None) for position in places)
            continue
        resource, window, _ = events[id]
        if rightly[id]:
            yield (Cause.LATE_AND_WINDOWED, resource, window, id, places[0], min(rightly[id]))
        elif len(places) > 1:
            yield (Cause.LATE_TWICE, resource, window, id, places[0], places[1])
        elif id in marks:
            yield (Cause.NOT_LATE, resource, window, id, places[0], marks[id])


def of_lost(lost, events, outputs):
    for place in {events[id][:2] for id in lost}:
        id = min(id for id in lost if events[id][:2] == place)
        there = [row[0] for row in outputs if row[1:3] == place]
        truncated, missing, incomplete = OF_A_WINDOW
        if there:
            yield (incomplete, *place, id, None, min(there))
        elif any(row[2] >= place[1] for row in outputs):
            yield (missing, *place, id, None, None)
        else:
            yield (truncated, *place, id, None, None)


def nonsense(dice, names=(1, 2, 3), posts=True):
    """Rows as `plain_judge` takes them: a right output after several random changes, and noise."""
    ids = dice.sample(range(14), dice.randint(0, 10))
    inputs = [
        (id, dice.randint(-100, 299), dice.choice(names[:2]), posts and dice.choice((True, False)))
        for id in ids
    ]
    late = [id for id in ids if dice.randint(0, 4) == 0]
    places = {}
    for id, time, resource, post in inputs:
        if id not in late or dice.randint(0, 9) == 0:
            sides = places.setdefault((resource, time // SIZE_MS * SIZE_MS), ([], []))
            sides[post].append(id)
    rows = [[*place, list(gets), list(posts)] for place, (gets, posts) in places.items()]
    for _ in range(dice.randint(0, 4)):
        change(dice, rows, late, names, posts)
    numbers = dice.sample(range(40), len(rows))
    outputs = [
        (number, resource, window, counted(dice, gets), gets, posts * counted(dice, posted), posted)
        for number, (resource, window, gets, posted) in zip(numbers, rows, strict=True)
    ]
    return inputs, outputs, list(zip(dice.sample(range(40), len(late)), late, strict=True))


def counted(dice, ids):
    return len(ids) + (dice.randint(0, 9) == 0)


def change(dice, rows, late, names, posts):
    side = dice.choice((2, 3)) if posts else 2
    row = dice.choice(rows) if rows else [names[0], 0, [], []]
    match dice.randint(0, 10):
        case 0 if rows:
            rows.remove(row)
        case 1:
            rows.append([row[0], row[1], list(row[2]), list(row[3])])
        case 2:
            row[1] += dice.choice((-100, -50, 100))
        case 3:
            row[0] = dice.choice(names)
        case 4 if len(rows) > 1:
            other = dice.choice(rows)
            row[side], other[side] = other[side], row[side]
        case 5:
            row[side].append(dice.randint(0, 15))
        case 6 if row[side]:
            row[side].append(dice.choice(row[side]))
        case 7 if row[side]:
            row[side].remove(dice.choice(row[side]))
        case 8:
            late.append(dice.randint(0, 15))
        case 9 if len(row[2]) + len(row[3]) > 1:  # in two parts
            cut = [dice.randint(0, len(ids)) for ids in row[2:]]
            rows.append([row[0], row[1], row[2][cut[0] :], row[3][cut[1] :]])
            row[2:] = row[2][: cut[0]], row[3][: cut[1]]
        case _:
            some = [dice.randint(0, 15) for _ in range(dice.randint(0, 3))]
            rows.append([dice.choice(names), dice.choice((-100, 0, 100, 200)), some, []])


def watermarks(dice, inputs):
    """A watermark for every event, at which some may be late and others not."""
    return {id: time + dice.choice((-50, 60, 120, 200)) for id, time, *_ in inputs}


def tables(inputs, outputs, late, posts=True, marks=None):
    """The same rows as batches."""
    columns = [list(column) for column in zip(*inputs, strict=True)] or [[]] * 4
    events = Batch.of(**dict(zip(("id", "time", "resource", "post"), columns, strict=True)))
    names = ["id", "time", "resource"] + ["post"] * posts
    if marks is not None:
        column = Batch.of(watermark=[marks[id] for id in columns[0]]).columns
        events, names = events.with_columns(**column), [*names, "watermark"]
    columns = [list(column) for column in zip(*outputs, strict=True)] or [[]] * 7
    table = Batch.of(position=columns[0], resource=columns[1], window=columns[2])
    lists = [Varlen.of("list", columns[number]) for number in (4, 6)]
    if posts:
        lists = {"gets": columns[3], "get_ids": lists[0], "posts": columns[5], "post_ids": lists[1]}
    else:
        lists = {"count": columns[3], "ids": lists[0]}
    table = table.with_columns(**Batch.of(**lists).columns)
    rows = Batch.of(position=[row[0] for row in late], id=[row[1] for row in late])
    return events.select(*names), table, rows

"""The layers of a space-time diagram, from the paper up to the labels.

Every layer is a function from the story and the frame to SVG; a later layer covers an earlier one, so
many thin arrows never hide the few checkpoints that they are there to explain.
"""

from collections.abc import Iterator

from snapline.ids import INITIAL, TaskId, checkpoint_label
from snapline.journal.entry import COORDINATOR
from snapline.report.spacetime import svg
from snapline.report.spacetime.layout import (
    CHARACTER,
    COORDINATOR_ROW,
    FLAGS,
    MARGIN,
    ROW,
    SLOT_LABEL,
    Labels,
    PictureFrame,
)
from snapline.report.spacetime.story import (
    Arrow,
    DrawnCheckpoint,
    Instant,
    Moment,
    Return,
    Span,
    Story,
    Stretch,
    Travel,
)
from snapline.report.spacetime.svg import number
from snapline.wording import plural


def paper(frame: PictureFrame) -> Iterator[str]:
    """Bands, names and the axis of time."""
    for band in frame.bands:
        width = frame.right - MARGIN + 14
        yield svg.box("band", MARGIN, band.top, width, band.height)
        yield svg.box("tag", MARGIN, band.top, SLOT_LABEL, band.height)
        x, y = MARGIN + SLOT_LABEL / 2 + 4, band.top + band.height / 2
        yield (
            f'<text class="slot" transform="translate({number(x)} {number(y)}) rotate(-90)">'
            f"slot {band.slot}</text>"
        )
    for lane, y in frame.lanes.items():
        name = lane.rpartition("/")[0] or lane
        yield svg.text(frame.left - 12, y + 4, "operator", name)
    yield from _axis(frame)


def _axis(frame: PictureFrame) -> Iterator[str]:
    y = frame.bottom + 6
    for x, label in frame.ticks():
        yield svg.segment("grid", x, frame.top, x, y)
        yield svg.segment("baseline", x, y, x, y + 4)
        yield svg.text(x, y + 17, "axis", label)
    yield svg.segment("baseline", frame.left, y, frame.right, y)
    yield svg.text(frame.left - 24, y + 17, "axis", "ms")


def lives(story: Story, frame: PictureFrame) -> Iterator[str]:
    """The timelines of tasks, broken while their process is dead."""
    for lane, y in frame.lanes.items():
        gaps = [s for s in story.spans if s.stretch is Stretch.DOWN and s.lane == lane]
        at = frame.left
        for gap in gaps:
            since, until = frame.clamp(gap.since_us), frame.clamp(gap.until_us)
            yield svg.segment("life", at, y, since, y)
            yield svg.group("down", _told(gap), svg.segment("gap", since, y, until, y))
            at = until
        yield svg.segment("life", at, y, frame.right, y)


def stretches(story: Story, frame: PictureFrame, drawing: str) -> Iterator[str]:
    """Blocked channels as a light bar, pauses as a hatched one."""
    for span in story.spans:
        if span.stretch is Stretch.DOWN:
            continue
        since, until = frame.clamp(span.since_us), frame.clamp(span.until_us)
        y, width = frame.lanes[span.lane], max(1.0, until - since)
        if span.stretch is Stretch.BLOCKED:
            bar = svg.box("blocked", since, y - 5, width, 10)
        else:
            bar = svg.box("hatched", since, y - 7, width, 14, f' fill="url(#{drawing}-hatch)"')
        yield svg.group("stretch", _told(span), bar)


def _told(span: Span) -> str:
    return f"{span.label} for {(span.until_us - span.since_us) / 1000:,.1f} ms"


_DEPTH = (Travel.MESSAGE, Travel.LOST, Travel.MARKER, Travel.REPLAYED, Travel.ORPHAN)


def arrows(story: Story, frame: PictureFrame) -> Iterator[str]:
    """Messages and markers, the remarkable ones on top."""
    for travel in _DEPTH:
        for each in story.arrows:
            if each.travel is travel:
                yield svg.arrow(travel.value, _tip(each), _shaft(each, frame))


def _tip(each: Arrow) -> str:
    sent = f"sent {each.sent_us / 1000:,.1f} ms"
    if each.received_us is None:
        return f"{each.label}: {sent}, lost under way"
    what = {Travel.REPLAYED: "replayed ", Travel.ORPHAN: "orphan "}.get(each.travel, "")
    return f"{what}{each.label}: {sent}, handled {each.received_us / 1000:,.1f} ms"


def _shaft(each: Arrow, frame: PictureFrame) -> str:
    x1, y1 = frame.x(each.sent_us), frame.lanes[each.channel.source]
    y2 = frame.lanes[each.channel.target]
    if each.received_us is None:  # a lost message is a short arrow that ends nowhere
        reach = 0.45 * ROW if y2 >= y1 else -0.45 * ROW
        return f"M{number(x1)} {number(y1)}L{number(x1 + 7)} {number(y1 + reach)}"
    x2 = frame.x(each.received_us)
    if y1 == y2:  # a loop of one task
        middle = number((x1 + x2) / 2)
        return f"M{number(x1)} {number(y1)}Q{middle} {number(y1 - ROW)} {number(x2)} {number(y2)}"
    return f"M{number(x1)} {number(y1)}L{number(x2)} {number(y2)}"


def regions(story: Story, frame: PictureFrame) -> Iterator[str]:
    """What a rollback undoes: all between its recovery line and its own moment."""
    for back in story.returns:
        corners = _corners(back, story, frame)
        top, bottom = corners[0][1], corners[-1][1]
        now = frame.x(back.at_us)
        yield svg.points("region", "polygon", [*corners, (now, bottom), (now, top)])
        yield svg.segment("moment", now, frame.lanes[COORDINATOR] + 9, now, bottom)


def lines(story: Story, frame: PictureFrame) -> Iterator[str]:
    """Every recovery line, with a ring around each checkpoint that it chose."""
    for back in story.returns:
        corners = _corners(back, story, frame)
        yield svg.points("rim", "polyline", corners)
        tip = f"recovery line of rollback {back.number} at {back.at_us / 1000:,.1f} ms"
        yield svg.group("recovery", tip, svg.points("line", "polyline", corners))
        for item in back.line.checkpoints.items():
            chosen = story.checkpoints.get(item)
            if chosen is not None and frame.shows(chosen.at_us):
                yield svg.ring(frame.x(chosen.at_us), frame.lanes[chosen.task])


def _corners(back: Return, story: Story, frame: PictureFrame) -> list[tuple[float, float]]:
    """One per task, and one half a row above the first and below the last."""
    corners = []
    for lane in frame.tasks:
        task = TaskId(lane)
        if task in back.line.checkpoints:
            chosen = story.checkpoints.get((task, back.line.checkpoints[task]))
            x = frame.left if chosen is None else frame.clamp(chosen.at_us)
            corners.append((x, frame.lanes[lane]))
    (x1, y1), (x2, y2) = corners[0], corners[-1]
    return [(x1, y1 - ROW / 2 - 4), *corners, (x2, y2 + ROW / 2)]


def checkpoints(story: Story, frame: PictureFrame, labels: Labels) -> Iterator[str]:
    """Local checkpoints, and then their numbers where there is room."""
    shown = [c for c in story.checkpoints.values() if frame.shows(c.at_us)]
    shown.sort(key=lambda each: not each.skipped)  # what still counts lies on top
    for back in story.returns:
        corners = _corners(back, story, frame)
        labels.reserve_path(corners, 2)
        now = frame.x(back.at_us)
        labels.reserve(now, frame.lanes[COORDINATOR], 9)
        labels.reserve_path([(now, frame.lanes[COORDINATOR]), (now, corners[-1][1])], 2)
    for each in shown:
        x, y = frame.x(each.at_us), frame.lanes[each.task]
        labels.reserve(x, y, 5)
        yield svg.group("checkpoint", _explain(each), svg.checkpoint(x, y, _states(each)))
    for each in shown:
        x, y = frame.x(each.at_us), frame.lanes[each.task]
        name = checkpoint_label(each.checkpoint)
        wishes = _around(x, y, name)
        place = labels.place(name, wishes)
        if place is not None:
            yield svg.text(*place, "number halo", name)


def _around(x: float, y: float, name: str) -> list[tuple[float, float]]:
    """The wished places of a number beside its mark: above and to the right is the best."""
    left = x - 7 - 5.2 * len(name)
    near = [(x + 6, y - 6.6), (x + 6, y + 13.6), (left, y - 6.6), (left, y + 13.6)]
    return [*near, (x + 10, y - 6.6), (x + 10, y + 13.6)]


def _states(each: DrawnCheckpoint) -> list[str]:
    states = ["saved" if each.stored_us is not None else "unsaved"]
    return states + ["forced"] * each.forced + ["skipped"] * each.skipped


def _explain(each: DrawnCheckpoint) -> str:
    kind = "forced checkpoint" if each.forced else "checkpoint"
    told = (
        f"{kind} {checkpoint_label(each.checkpoint)} of {each.task} at {each.at_us / 1000:,.1f} ms"
    )
    if each.stored_us is None:
        return f"{told}, never durable"
    told += f", durable at {each.stored_us / 1000:,.1f} ms"
    return f"{told}, skipped by a rollback" if each.skipped else told


_GLYPHS = {
    Instant.CRASH: svg.cross,
    Instant.FAULT: svg.warning,
    Instant.COMMIT: svg.tick,
    Instant.RESUMED: svg.restart,
}


def events(story: Story, frame: PictureFrame, labels: Labels) -> Iterator[str]:
    """Crashes, commits and the like."""
    for each in story.events:
        x, y = frame.x(each.at_us), frame.lanes[each.lane]
        labels.reserve(x, y, 7)
        told = f"{_event_text(each)} at {each.at_us / 1000:,.1f} ms"
        yield svg.group(each.instant.value, told, _GLYPHS[each.instant](x, y))
    for each in story.events:
        if each.count:
            x, y = frame.x(each.at_us), frame.lanes[each.lane]
            place = labels.place(f"+{each.count:,}", [(x + 9, y - 4.5)], 9.5)
            if place is not None:
                yield svg.text(*place, "count halo", f"+{each.count:,}")


def _event_text(each: Moment) -> str:
    return each.label if not each.count else f"{each.label}, {plural(each.count, 'row')} of output"


def flags(story: Story, frame: PictureFrame, labels: Labels) -> Iterator[str]:
    """The names of recovery lines, and the rollbacks in the coordinator's lane."""
    y = frame.top + COORDINATOR_ROW + FLAGS / 2 + 2
    for back in story.returns:
        x, lane = frame.x(back.at_us), frame.lanes[COORDINATOR]
        lost = f", because of the loss of {', '.join(back.lost)}" if back.lost else ""
        ends = f": epoch {back.epoch} ends" if back.whole else ""
        tip = f"rollback {back.number} at {back.at_us / 1000:,.1f} ms{ends}{lost}"
        yield svg.group("rollback", tip, svg.turn(x, lane))
        name = f"recovery line {back.number}" if back.whole else "restart alone"
        first = _corners(back, story, frame)[0][0]
        wishes = [(first + 5, y), (first - 5 - CHARACTER * len(name) * 0.9, y), (x + 6, y)]
        place = labels.place(name, wishes, 10.5)
        if place is not None:
            yield svg.text(*place, "flag halo", name)


def origins(story: Story, frame: PictureFrame) -> Iterator[str]:
    """Where a line goes back beyond the window: to the initial state, or to what is not shown."""
    for back in story.returns:
        for task, chosen_no in back.line.checkpoints.items():
            chosen = story.checkpoints.get((task, chosen_no))
            if chosen is None or chosen.at_us < frame.since_us:
                what = "its initial state" if chosen_no == INITIAL else checkpoint_label(chosen_no)
                x, y = frame.left, frame.lanes[task]
                tip = f"{task} goes back to {what}"
                yield svg.group("origin", tip, svg.origin(x, y, chosen_no == INITIAL))

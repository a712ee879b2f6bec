"""The caption and the legend of a space-time diagram, which explain only what occurs in it."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

from snapline.report.spacetime import svg
from snapline.report.spacetime.layout import MARGIN, PictureFrame
from snapline.report.spacetime.story import DrawnCheckpoint, Instant, Story, Stretch, Travel
from snapline.wording import plural

Sample: TypeAlias = Callable[[float, float], str]
LONG, SHORT = 30.0, 15.0  # the width that a sample takes
LEGEND_ROW = 22.0


def caption(story: Story, frame: PictureFrame) -> str:
    """The counts of what is drawn, and the time that it took."""
    travels = [arrow.travel for arrow in story.arrows]
    shown = _shown(story, frame)
    forced = sum(checkpoint.forced for checkpoint in shown)
    parts = [
        plural(sum(t in (Travel.MESSAGE, Travel.ORPHAN, Travel.LOST) for t in travels), "message"),
        plural(len(shown), "checkpoint") + (f" ({forced} forced)" if forced else ""),
        plural(len(story.returns), "rollback"),
        f"{travels.count(Travel.REPLAYED)} replayed",
        f"{frame.since_us / 1000:,.0f} to {frame.until_us / 1000:,.0f} ms",
    ]
    return "  ·  ".join(parts)


def _shown(story: Story, frame: PictureFrame) -> list[DrawnCheckpoint]:
    return [each for each in story.checkpoints.values() if frame.shows(each.at_us)]


def legend(story: Story, frame: PictureFrame, drawing: str, top: float) -> tuple[list[str], float]:
    """The explained samples in rows, and where they end."""
    drawn: list[str] = []
    x, y = MARGIN, top
    for sample, room, words in _entries(story, frame, drawing):
        width = room + 7 + len(words) * 6.1 + 18
        if x > MARGIN and x + width > frame.width - MARGIN:
            x, y = MARGIN, y + LEGEND_ROW
        drawn.append(sample(x, y))
        drawn.append(svg.text(x + room + 7, y + 4, "key", words))
        x += width
    return drawn, y + LEGEND_ROW


def _entries(
    story: Story, frame: PictureFrame, drawing: str
) -> Iterator[tuple[Sample, float, str]]:
    travels = [arrow.travel for arrow in story.arrows]
    for travel, words in _TRAVELS:
        if travel in travels:
            yield _arrow(travel), LONG, words
    checkpoints = _shown(story, frame)
    for states, words in _CHECKPOINTS:
        if any(_looks(each, states) for each in checkpoints):
            yield _centred(partial(svg.checkpoint, states=states)), SHORT, words
    if story.returns:
        yield _line, LONG, "recovery line, and what it undoes"
        yield _centred(svg.turn), SHORT, "rollback"
    stretches = [span.stretch for span in story.spans]
    for stretch, kind, words in _STRETCHES:
        if stretch in stretches:
            yield _bar(kind, drawing), LONG, words
    instants = [event.instant for event in story.events]
    for instant, glyph, words in _INSTANTS:
        if instant in instants:
            yield _centred(glyph), SHORT, words


def _looks(each: DrawnCheckpoint, states: tuple[str, ...]) -> bool:
    wanted = ("skipped" in states, "unsaved" in states)
    if "skipped" in states or "unsaved" in states:
        return (each.skipped, each.stored_us is None) == wanted
    return each.forced == ("forced" in states)


_TRAVELS = (
    (Travel.MESSAGE, "message"),
    (Travel.MARKER, "marker"),
    (Travel.REPLAYED, "replayed message"),
    (Travel.ORPHAN, "orphan of the newest checkpoints"),
    (Travel.LOST, "message lost under way"),
)
_CHECKPOINTS = (
    (("saved",), "checkpoint"),
    (("saved", "forced"), "forced checkpoint"),
    (("unsaved",), "never durable"),
    (("saved", "skipped"), "skipped"),
)
_STRETCHES = (
    (Stretch.BLOCKED, "blocked", "channel blocked"),
    (Stretch.PAUSED, "hatched", "paused"),
    (Stretch.DOWN, "gap", "down or restoring"),
)
_INSTANTS: tuple[tuple[Instant, Sample, str], ...] = (
    (Instant.CRASH, svg.cross, "crash"),
    (Instant.FAULT, svg.warning, "another fault"),
    (Instant.COMMIT, svg.tick, "line committed (+ rows of output)"),
    (Instant.RESUMED, svg.restart, "coordinator resumed"),
)


def _centred(glyph: Sample) -> Sample:
    return lambda x, y: glyph(x + SHORT / 2, y)


def _arrow(travel: Travel) -> Sample:
    def sample(x: float, y: float) -> str:
        a, b, c = map(svg.number, (x, y, x + LONG - 2))
        return f'<g class="travel {travel.value}"><path class="shaft" d="M{a} {b}H{c}"/></g>'

    return sample


def _line(x: float, y: float) -> str:
    region = svg.box("region", x + 8, y - 8, LONG - 8, 16)
    ends = [(x + 5, y - 8), (x + 11, y), (x + 8, y + 8)]
    return region + svg.points("line", "polyline", ends)


def _bar(kind: str, drawing: str) -> Sample:
    def sample(x: float, y: float) -> str:
        end = x + LONG
        if kind == "gap":
            return svg.segment("gap", x, y, end, y)
        fill = f' fill="url(#{drawing}-hatch)"' if kind == "hatched" else ""
        bar = svg.box(kind, x + 4, y - 5, LONG - 8, 10, fill)
        return bar + svg.segment("life", x, y, end, y)

    return sample

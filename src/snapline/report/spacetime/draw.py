"""The space-time diagram of a run, as the papers draw theirs: a timeline per task, an arrow per message.

`draw` turns a journal into one standalone SVG: no script, no font and no file beside it, and equal
journals give equal bytes. A long run is shown in part; `interesting_window` proposes which.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from zlib import crc32

from snapline.core.effects import Rollback, Snapshot
from snapline.core.topology import Topology
from snapline.ids import CheckpointNo, Micros
from snapline.journal.entry import COORDINATOR, Entry, Handled, Stamped
from snapline.report.spacetime import marks, svg
from snapline.report.spacetime.layout import AXIS, MARGIN, Labels, PictureFrame
from snapline.report.spacetime.legend import caption, legend
from snapline.report.spacetime.story import Story, Travel
from snapline.report.spacetime.teller import tell


def draw(
    entries: Sequence[Entry],
    topology: Topology,
    *,
    title: str,
    since_us: Micros | None = None,
    until_us: Micros | None = None,
) -> str:
    """A journal as a space-time diagram, whole or between two moments."""
    story = tell(entries, topology)
    since = story.begin_us if since_us is None else since_us
    until = story.end_us if until_us is None else until_us
    story = _within(story, since, until)
    messages = sum(arrow.travel is not Travel.MARKER for arrow in story.arrows)
    frame = PictureFrame(topology, since, until, messages)
    drawing = f"spacetime-{crc32(f'{title}|{since}|{until}|{len(entries)}'.encode()):08x}"
    keys, bottom = legend(story, frame, drawing, frame.bottom + AXIS + 18)
    width, height = svg.number(frame.width), svg.number(bottom + 4)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" id="{drawing}" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img" style="max-width:100%;height:auto">',
            f"<title>{escape(title)}</title>",
            svg.style(drawing, messages),
            svg.definitions(drawing, _window(frame)),
            svg.box("page", 0.5, 0.5, frame.width - 1, bottom + 3),
            svg.text(MARGIN, 31, "heading", title),
            svg.text(MARGIN, 51, "caption", caption(story, frame)),
            *_picture(story, frame, drawing),
            *keys,
            "</svg>\n",
        ]
    )


def _picture(story: Story, frame: PictureFrame, drawing: str) -> list[str]:
    labels = Labels()
    checkpoints = list(marks.checkpoints(story, frame, labels))
    return [
        *marks.paper(frame),
        f'<g clip-path="url(#{drawing}-window)">',
        *marks.regions(story, frame),
        *marks.stretches(story, frame, drawing),
        *marks.lives(story, frame),
        *marks.arrows(story, frame),
        *marks.lines(story, frame),
        "</g>",
        *checkpoints,
        *marks.origins(story, frame),
        *marks.events(story, frame, labels),
        *marks.flags(story, frame, labels),
    ]


def _window(frame: PictureFrame) -> tuple[float, float, float, float]:
    """The clipping rectangle, a little wider than the axis, so that marks at its ends stay whole."""
    left, top = frame.left - 10, frame.top - 4
    return left, top, frame.right + 12 - left, frame.bottom + 4 - top


def _within(story: Story, since: Micros, until: Micros) -> Story:
    """The part of a story between two moments, with all checkpoints: a line may go back to earlier ones."""

    def overlaps(begin: Micros, end: Micros | None) -> bool:
        return begin <= until and (begin if end is None else end) >= since

    return replace(
        story,
        arrows=[a for a in story.arrows if overlaps(a.sent_us, a.received_us)],
        spans=[s for s in story.spans if overlaps(s.since_us, s.until_us)],
        events=[e for e in story.events if since <= e.at_us <= until],
        returns=[r for r in story.returns if since <= r.at_us <= until],
    )


WINDOW_US: Micros = 1_000_000
BEFORE = 0.4
MESSAGES_BEFORE = 120


def interesting_window(entries: Sequence[Entry]) -> tuple[Micros, Micros]:
    """The time around the first rollback, or the end of the run when there is none.

    Two fifths of it lie before the rollback: as much as shows the whole recovery line, unless that
    would be so many messages that nobody could see them.
    """
    if not entries:
        return 0, 0
    first, last = entries[0].at_us, entries[-1].at_us
    taken: dict[tuple[str, CheckpointNo], Micros] = {}
    for entry in entries:
        if not isinstance(entry, Handled):
            continue
        for effect in entry.effects:
            if isinstance(effect, Snapshot):
                taken[entry.actor, effect.checkpoint] = entry.at_us
            elif isinstance(effect, Rollback) and entry.actor == COORDINATOR:
                items = effect.line.checkpoints.items() if taken else ()
                chosen = [taken.get(item, first) for item in items]
                return _around(entries, entry.at_us, min(chosen, default=entry.at_us))
    return max(first, _uncrowded(entries, last), last - WINDOW_US), last


def _around(entries: Sequence[Entry], at: Micros, line: Micros) -> tuple[Micros, Micros]:
    first, last = entries[0].at_us, entries[-1].at_us
    usual = at - round(WINDOW_US * BEFORE)
    since = max(first, _uncrowded(entries, at), min(usual, line - (at - line) // 10))
    return since, min(last, at + round((at - since) * (1 - BEFORE) / BEFORE))


def _uncrowded(entries: Sequence[Entry], until: Micros) -> Micros:
    """The earliest moment from which on, until `until`, no more messages were sent than can be seen."""
    sent = [entry.at_us for entry in entries if isinstance(entry, Stamped)]
    before = bisect_left(sent, until)
    return sent[before - MESSAGES_BEFORE] if before > MESSAGES_BEFORE else entries[0].at_us

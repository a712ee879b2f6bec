"""Writes the SVG of the space-time diagram: elements, the palette, and one glyph per kind of mark.

The palette is that of Okabe and Ito, which people with any form of colour blindness can tell apart;
shape and dash repeat what colour says. Class names are confined by the id of the drawing, so that many
drawings can stand in one page.
"""

from collections.abc import Iterable, Sequence
from html import escape

INK, SLATE, PALE = "#1b2733", "#5a6b7c", "#b4bec8"
BLUE, SKY, GREEN = "#0b5cad", "#2f93cf", "#00805e"
ORANGE, RED, PURPLE = "#e08a00", "#c8281e", "#a2418f"

_STYLE = """
text {{ font-family: Inter, "Segoe UI", "Helvetica Neue", Arial, sans-serif; fill: {ink}; }}
.page {{ fill: #ffffff; stroke: #d9dfe5; }}
.heading {{ font-size: 17px; font-weight: 600; }}
.caption, .axis, .key {{ font-size: 11.5px; fill: {slate}; }}
.operator {{ font-size: 12px; text-anchor: end; }}
.slot {{ font-size: 11px; fill: {slate}; text-anchor: middle; letter-spacing: .04em; }}
.band {{ fill: #f5f7f9; }} .tag {{ fill: #e6ebf0; }}
.grid {{ stroke: #e3e8ed; }} .baseline {{ stroke: #9aa7b4; }}
.axis {{ text-anchor: middle; }}
.life {{ stroke: #3d4b59; stroke-width: 1; }}
.gap {{ stroke: #8996a3; stroke-width: 1.4; stroke-dasharray: .1 5; stroke-linecap: round; }}
.blocked {{ fill: {sky}; opacity: .22; }}
.travel path {{ fill: none; }}
.travel .hit {{ stroke: transparent; stroke-width: 7; marker-end: none; }}
.message .shaft {{ stroke: {slate}; stroke-width: .8; opacity: {opacity}; }}
.lost .shaft {{ stroke: {slate}; stroke-width: 1.1; stroke-dasharray: 1.5 2; }}
.marker .shaft {{ stroke: {sky}; stroke-width: 1.1; stroke-dasharray: 5 3; opacity: .9; }}
.replayed .shaft {{ stroke: {orange}; stroke-width: 1.5; opacity: .95; }}
.orphan .shaft {{ stroke: {red}; stroke-width: 1.6; opacity: .95; }}
.travel:hover .shaft {{ stroke-width: 2.4; opacity: 1; }}
.saved {{ fill: {ink}; stroke: #ffffff; stroke-width: 1; }}
.forced {{ fill: {purple}; }}
.unsaved {{ fill: #ffffff; stroke: {ink}; stroke-width: 1.4; }}
.unsaved.forced {{ stroke: {purple}; }}
.skipped {{ fill: {pale}; }}
.slash {{ stroke: #66727f; stroke-width: 1.5; stroke-linecap: round; }}
.number {{ font-size: 9px; }}
.halo {{ paint-order: stroke; stroke: #ffffff; stroke-width: 2.6px; stroke-linejoin: round; }}
.line {{ fill: none; stroke: {blue}; stroke-width: 3; stroke-linejoin: round; opacity: .85;
  stroke-linecap: round; }}
.rim {{ fill: none; stroke: #ffffff; stroke-width: 6; stroke-linejoin: round; opacity: .8; }}
.ring {{ fill: #ffffff; stroke: {blue}; stroke-width: 2.2; }}
.region {{ fill: {blue}; opacity: .06; }}
.moment {{ stroke: {blue}; stroke-width: 1.1; stroke-dasharray: 2 3; opacity: .8; }}
.flag {{ font-size: 10.5px; fill: {blue}; font-weight: 600; }}
.turn {{ fill: none; stroke: {blue}; stroke-width: 1.8; }} .turn-head {{ fill: {blue}; }}
.cross {{ stroke: {red}; stroke-width: 2.6; stroke-linecap: round; fill: none; }}
.fault {{ fill: #ffffff; stroke: {red}; stroke-width: 1.5; stroke-linejoin: round; }}
.tick {{ stroke: {green}; stroke-width: 2.2; stroke-linecap: round; fill: none;
  stroke-linejoin: round; }}
.resumed {{ fill: {green}; }} .count {{ font-size: 9.5px; fill: {green}; }}
"""
_COLOURS = {"ink": INK, "slate": SLATE, "pale": PALE, "blue": BLUE, "sky": SKY, "green": GREEN}
_COLOURS |= {"orange": ORANGE, "red": RED, "purple": PURPLE}

_HEADS = {"message": SLATE, "marker": SKY, "replayed": ORANGE, "orphan": RED}


def style(drawing: str, messages: int) -> str:
    """The style sheet; the more messages there are, the lighter each of them is."""
    opacity = f"{min(0.75, max(0.42, 75 / (messages + 1))):.2f}"
    sheet = _STYLE.format(opacity=opacity, **_COLOURS)
    rules = [rule.strip() for rule in sheet.replace("}", "}\n").splitlines()]
    joined = " ".join(rule for rule in rules if rule).replace("} ", "}\n")
    confined = "\n".join(_confine(drawing, rule) for rule in joined.splitlines())
    heads = "\n".join(
        f"#{drawing} .{kind} .shaft {{ marker-end: url(#{drawing}-{kind}); }}" for kind in _HEADS
    )
    return f"<style>\n{confined}\n{heads}\n</style>"


def _confine(drawing: str, rule: str) -> str:
    selectors, body = rule.split("{", 1)
    confined = ", ".join(f"#{drawing} {one.strip()}" for one in selectors.split(","))
    return f"{confined} {{{body}"


def definitions(drawing: str, clip: tuple[float, float, float, float]) -> str:
    """Arrow heads, the hatch of pauses, and the window that hides what lies outside of it."""
    heads = "".join(
        f'<marker id="{drawing}-{kind}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="5.5" '
        'markerHeight="5.5" markerUnits="userSpaceOnUse" orient="auto">'
        f'<path d="M0 .8 8 4 0 7.2z" fill="{colour}"/></marker>'
        for kind, colour in _HEADS.items()
    )
    x, y, width, height = map(number, clip)
    return (
        f'<defs>{heads}<pattern id="{drawing}-hatch" width="6" height="6" '
        'patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        f'<rect width="6" height="6" fill="#eef1f4"/><path d="M0 0V6" stroke="{SLATE}" '
        'stroke-width="1.6" opacity=".55"/></pattern>'
        f'<clipPath id="{drawing}-window"><rect x="{x}" y="{y}" width="{width}" '
        f'height="{height}"/></clipPath></defs>'
    )


def number(value: float) -> str:
    """A coordinate: a tenth of a pixel is enough."""
    return f"{value:.1f}".removesuffix(".0")


def text(x: float, y: float, kind: str, content: str) -> str:
    """A piece of text."""
    return f'<text class="{kind}" x="{number(x)}" y="{number(y)}">{escape(content)}</text>'


def group(kind: str, tip: str, content: str) -> str:
    """A mark with its tooltip."""
    told = f"<title>{escape(tip)}</title>" if tip else ""
    return f'<g class="{kind}">{told}{content}</g>'


def segment(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    """A straight line."""
    a, b, c, d = map(number, (x1, y1, x2, y2))
    return f'<line class="{kind}" x1="{a}" y1="{b}" x2="{c}" y2="{d}"/>'


def box(kind: str, x: float, y: float, width: float, height: float, extra: str = "") -> str:
    """A rectangle."""
    a, b, c, d = map(number, (x, y, width, height))
    return f'<rect class="{kind}" x="{a}" y="{b}" width="{c}" height="{d}" rx="3"{extra}/>'


def points(kind: str, shape: str, at: Iterable[tuple[float, float]]) -> str:
    """A polyline or a polygon."""
    where = " ".join(f"{number(x)},{number(y)}" for x, y in at)
    return f'<{shape} class="{kind}" points="{where}"/>'


def arrow(kind: str, tip: str, shaft: str) -> str:
    """An arrow along a path, with an invisible broad one above it for the pointer to find."""
    paths = f'<path class="shaft" d="{shaft}"/><path class="hit" d="{shaft}"/>'
    return group(f"travel {kind}", tip, paths)


# Glyphs, centred on (x, y).


def checkpoint(x: float, y: float, states: Sequence[str]) -> str:
    """A square, or a diamond when forced; with a slash when skipped."""
    kinds = " ".join(states)
    size = 4.6
    if "forced" in states:
        size = 6.2
        corners = [(x, y - size), (x + size, y), (x, y + size), (x - size, y)]
    else:
        corners = [(x - size, y - size), (x + size, y - size)]
        corners += [(x + size, y + size), (x - size, y + size)]
    drawn = points(kinds, "polygon", corners)
    if "skipped" in states:
        drawn += segment("slash", x - 7, y + 7, x + 7, y - 7)
    return drawn


def ring(x: float, y: float) -> str:
    """A ring around a checkpoint on the recovery line."""
    return f'<circle class="ring" cx="{number(x)}" cy="{number(y)}" r="8.6"/>'


def cross(x: float, y: float, size: float = 5.5) -> str:
    """A cross: a process dies."""
    a, b, c, d = map(number, (x - size, y - size, x + size, y + size))
    return f'<path class="cross" d="M{a} {b} {c} {d}M{a} {d} {c} {b}"/>'


def tick(x: float, y: float) -> str:
    """A tick: a line is committed."""
    return points("tick", "polyline", [(x - 4, y), (x - 1, y + 3.5), (x + 4.5, y - 4.5)])


def warning(x: float, y: float) -> str:
    """A fault that kills nobody, or the discovery of one."""
    return points("fault", "polygon", [(x, y - 5.5), (x + 5.5, y + 4), (x - 5.5, y + 4)])


def turn(x: float, y: float) -> str:
    """A rollback: an arrow that goes back."""
    a, b = number(x), number(y)
    return (
        f'<path class="turn" d="M{number(x + 5)} {number(y + 4.5)}A6 6 0 1 0 {number(x - 4.6)} {b}"/>'
        f'<path class="turn-head" d="M{a} {b}m-8.2 -1.6h7.2l-3.6 5.6z"/>'
    )


def restart(x: float, y: float) -> str:
    """A triangle: the coordinator is back."""
    return points("resumed", "polygon", [(x - 4, y - 5), (x + 5.5, y), (x - 4, y + 5)])


def origin(x: float, y: float, initial: bool) -> str:
    """Where a recovery line leaves the window: at a beginning, or to the left."""
    if initial:
        return f'<circle class="ring" cx="{number(x)}" cy="{number(y)}" r="4.5"/>'
    return points("turn-head", "polygon", [(x + 5, y - 6), (x - 5, y), (x + 5, y + 6)])

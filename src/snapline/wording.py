"""How numbers are written, everywhere alike: of things (`2 lines`), of milliseconds, of bytes."""


def plural(number: int, noun: str, many: str = "") -> str:
    """A number of things: `plural(1, "line")` is "1 line". `many` is the plural if it is not noun + s."""
    return f"{number:,} {noun if number == 1 else many or noun + 's'}"


def are(number: int) -> str:
    """The verb behind a number of things: one of them *is*, several *are*."""
    return "is" if number == 1 else "are"


def latency(value_ms: float | None) -> str:
    """A latency as people read it: fewer digits the longer it is, and `-` for None."""
    if value_ms is None:
        return "-"
    if value_ms < 0.1:
        return "<0.1 ms"
    if value_ms >= 10_000:
        return f"{value_ms / 1000:.1f} s"
    return f"{value_ms:.0f} ms" if value_ms >= 10 else f"{value_ms:.1f} ms"


def size(count: float) -> str:
    """A number of bytes as people read it: `1.5 MB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"

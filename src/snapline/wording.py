"""How a number of things is written, everywhere alike: `1 line`, `2 lines`, `1,000 records`."""


def plural(number: int, noun: str, many: str = "") -> str:
    """A number of things: `plural(1, "line")` is "1 line". `many` is the plural if it is not noun + s."""
    return f"{number:,} {noun if number == 1 else many or noun + 's'}"


def are(number: int) -> str:
    """The verb behind a number of things: one of them *is*, several *are*."""
    return "is" if number == 1 else "are"

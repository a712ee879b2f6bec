"""A fixture for pytest: `check_stream` fails a test unless a streaming query survived its kills.

pytest loads this module in every project where Snapline is installed, so it imports nothing of Snapline
before the fixture is called.
"""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from snapline.systems.own_query.check import StreamCheck


@pytest.fixture
def check_stream(tmp_path: Path) -> Callable[..., "StreamCheck"]:
    """`check_stream(build, df, ...)` is `sl.check_stream`; if its verdict is not yes, the test fails."""
    numbers = count()

    def check(*arguments: Any, **options: Any) -> "StreamCheck":
        import snapline as sl

        directory = tmp_path / f"check-stream-{next(numbers)}"
        result = sl.check_stream(*arguments, **{"directory": directory, **options})
        if not result:
            pytest.fail(str(result), pytrace=False)
        return result

    return check

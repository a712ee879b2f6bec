"""When a slot gets compiled kernels, if the process from which it was forked had none.

In a session of our own that process has loaded them. In a session of the user's, and as a plain process, a
slot starts with numpy: to load takes most of a second of computing, and a slot that starts again has better
things to do. Once it has computed for a while it is worth it, and is done in a thread beside the loop.
"""

import threading
import time

from snapline.kernels import cache, forms

WORTH_IT_S = 5.0
"""How long a slot has computed before it loads kernels."""


class WarmUp:
    """The way of one process to compiled kernels."""

    def __init__(self) -> None:
        self._begun = forms.loaded()
        self._asked = False

    def start(self) -> None:
        """Load at once, if the environment asks for that."""
        self._begun = cache.load_if_asked()

    def look(self) -> None:
        """Load beside the loop, if it is worth it by now, and somebody has compiled."""
        if self._begun or time.process_time() < WORTH_IT_S:
            return
        if cache.compiled_before():
            self._begun = True
            threading.Thread(target=cache.load, name="snapline-kernels", daemon=True).start()
        elif not self._asked:
            self._asked = True
            cache.compile_beside()

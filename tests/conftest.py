"""How hard hypothesis tries: quickly at a desk, longer and always with the same examples in CI."""

import os

from hypothesis import HealthCheck, settings

# The machines differ too much for a deadline per example: a slow one is not a wrong one.
settings.register_profile("desk", deadline=None)
settings.register_profile(
    "ci",
    deadline=None,
    max_examples=300,
    derandomize=True,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci" if os.environ.get("CI") else "desk")

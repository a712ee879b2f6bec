"""Fixtures for several folders, and how hypothesis tries: with other examples every time at a desk, always
with the same ones in CI."""

import os
import signal

from hypothesis import HealthCheck, settings

pytest_plugins = ("kernel_forms", "shared_spark", "storage_forms")

# The machines differ too much for a deadline per example, or for a pace: a slow one is not a wrong one.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("desk", PATIENT)
settings.register_profile("ci", PATIENT, derandomize=True, database=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")

# A shell that starts tests in the background has them ignore Ctrl-C, and what they start inherits that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

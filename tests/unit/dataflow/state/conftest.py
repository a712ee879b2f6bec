"""State is tested with kernels in numpy and with compiled ones."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def forms_of_kernels(both_forms):
    return both_forms

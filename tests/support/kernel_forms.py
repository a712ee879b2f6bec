"""Kernels in each of their forms: in numpy, as a plain loop, and as the loop that numba has compiled."""

from collections.abc import Callable, Iterator
from functools import cache
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
import pytest

from snapline.kernels import forms


@pytest.fixture(scope="module", params=["numpy", "compiled"])
def kernel_form(request: pytest.FixtureRequest) -> Iterator[str]:
    """All tests of a module with kernels in numpy, then with compiled ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(forms.VARIABLE, request.param)
        assert forms.load() == (request.param == "compiled")
        yield request.param
        forms.unload()


Form: TypeAlias = Callable[..., Any]


def forms_of(module: ModuleType, name: str) -> tuple[Form, Form, Form]:
    """A kernel in numpy, as a plain loop, and compiled, which is done by the first call."""
    (kernel,) = (
        known
        for known in forms.KERNELS
        if known.takes and (known.numpy.__module__, known.numpy.__name__) == (module.__name__, name)
    )

    @cache
    def compiled() -> Form:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(forms.VARIABLE, "compiled")
            forms.load()
            found: Form = getattr(module, name)
            forms.unload()
        return found

    def loop(*arguments: Any) -> Any:
        with np.errstate(over="ignore"):  # compiled it does not warn
            return kernel.loop(*arguments)

    return kernel.numpy, loop, lambda *arguments: compiled()(*arguments)


def results(kernel: tuple[Form, ...], *arguments: Any) -> list[Any]:
    """What each form of a kernel returns."""
    return [form(*arguments) for form in kernel]


def frozen(array: Any) -> Any:
    """The array, which nobody may write to, as columns often are."""
    array.flags.writeable = False
    return array


def assert_same(results: list[Any], expected: Any) -> None:
    """All forms gave these numbers, in arrays of one type."""
    assert [found.tolist() for found in results] == [expected] * len(results)
    assert len({found.dtype for found in results}) == 1

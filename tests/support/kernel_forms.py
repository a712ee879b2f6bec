"""The kernels in each of their forms: in numpy, as plain loops, and compiled."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache as once
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
import pytest

from snapline.kernels import cache, forms

FORMS = ("numpy", "loop", "compiled")


@once
def _compiled() -> dict[Callable[..., Any], Callable[..., Any]]:
    """The compiled form of each kernel, by the form in numpy."""
    before = forms.loaded()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(forms.VARIABLE, "compiled")
        assert cache.load(), "the tests compare with compiled kernels: they need numba"
    try:
        return {kernel.numpy: _present(kernel) for kernel in known()}
    finally:
        if not before:
            forms.unload()


def known() -> list[forms.Kernel]:
    return list(forms.KERNELS)


@contextmanager
def installed(form: str) -> Iterator[None]:
    """All kernels in one form, as long as this lasts. Plain loops may overflow, as compiled ones do."""
    compiled = _compiled()
    before = [(kernel, _present(kernel)) for kernel in known()]
    for kernel in known():
        chosen = {"numpy": kernel.numpy, "loop": kernel.loop, "compiled": compiled[kernel.numpy]}
        kernel.install(chosen[form])
    try:
        with np.errstate(over="ignore"):
            yield
    finally:
        for kernel, function in before:
            kernel.install(function)


def _present(kernel: forms.Kernel) -> Callable[..., Any]:
    present: Callable[..., Any] = getattr(
        sys.modules[kernel.numpy.__module__], kernel.numpy.__name__
    )
    return present


@pytest.fixture(scope="module", params=FORMS)
def each_form(request: pytest.FixtureRequest) -> Iterator[str]:
    """All kernels in each form in turn."""
    with installed(request.param):
        yield request.param


@pytest.fixture(scope="module", params=("numpy", "compiled"))
def both_forms(request: pytest.FixtureRequest) -> Iterator[str]:
    """All kernels in the two forms in which slots have them."""
    with installed(request.param):
        yield request.param


Form: TypeAlias = Callable[..., Any]


def forms_of(module: ModuleType, name: str) -> tuple[Form, Form, Form]:
    """A kernel in numpy, as a plain loop, and compiled, which is done by the first call."""
    (kernel,) = (
        each
        for each in known()
        if each.takes and (each.numpy.__module__, each.numpy.__name__) == (module.__name__, name)
    )

    def loop(*arguments: Any) -> Any:
        with np.errstate(over="ignore"):  # compiled it does not warn
            return kernel.loop(*arguments)

    return kernel.numpy, loop, lambda *arguments: _compiled()[kernel.numpy](*arguments)


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

"""Bridges of toy episodes and clients that have connected to them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from cua_gym.bridge.serve import Served
from tests.bridge.clients import WAYS, Caller, Way, connect, toy_served
from tests.bridge.watcher import Page, Watch


@dataclass(frozen=True, slots=True)
class Pair:
    """Both bridges of one episode, with a client each."""

    served: Served
    desktop: Caller
    shell: Caller


def _pair(folder: Path, way: Way) -> Iterator[Pair]:
    with (
        toy_served(folder) as served,
        connect(served, "desktop", way) as desktop,
        connect(served, "shell", way) as shell,
    ):
        yield Pair(served, desktop, shell)


@pytest.fixture(scope="module", params=WAYS)
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    """Over each transport; one episode for all tests of a module, which do not end it."""
    yield from _pair(tmp_path_factory.mktemp("pair"), request.param)


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Over HTTP alone, for what is the same over every transport."""
    yield from _pair(tmp_path_factory.mktemp("quick"), "modern")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A served episode of its own, for a test that ends or breaks it."""
    with toy_served(tmp_path) as served:
        yield served


@pytest.fixture
def watch() -> Iterator[Watch]:
    """Makes watchers, who go away in the end."""
    with ExitStack() as stack:

        def come(served: Served, who: str = "one") -> Page:
            page = Page(served, who)
            stack.callback(page.http.close)
            return page

        yield come


@pytest.fixture
def page(served: Served, watch: Watch) -> Page:
    """One who watches."""
    return watch(served)

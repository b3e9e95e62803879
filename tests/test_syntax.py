"""Syntax trees from several threads."""

from __future__ import annotations

import ast
import gc
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from cua_gym.syntax import syntax_tree

SOURCE = "\n".join(f"x{n} = [a + {n} for a in f({n}, b={n}) if a]" for n in range(30))


@pytest.fixture
def _eager_collections() -> Iterator[None]:
    """Garbage collections that let other threads have a turn, as finalizers may."""

    def called(*_: object) -> None:
        time.sleep(0.001)

    before = gc.get_threshold()
    gc.freeze()
    gc.callbacks.append(called)
    gc.set_threshold(50)
    yield
    gc.set_threshold(*before)
    gc.unfreeze()
    gc.callbacks.remove(called)


@pytest.mark.usefixtures("_eager_collections")
def test_threads_parse_side_by_side() -> None:
    """No thread counts another one's depth."""
    with ThreadPoolExecutor(4) as pool:
        trees = [tree.result() for tree in [pool.submit(syntax_tree, SOURCE) for _ in range(12)]]
    assert {len(tree.body) for tree in trees} == {30}


def test_faults_name_the_file() -> None:
    """As `ast.parse`."""
    with pytest.raises(SyntaxError) as caught:
        syntax_tree("x = (", "mine.py")
    assert caught.value.filename == "mine.py"
    assert isinstance(syntax_tree(b"x = 1").body[0], ast.Assign)

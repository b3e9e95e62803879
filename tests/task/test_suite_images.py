"""A suite's own images: its tasks find them, from their recipe to their machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import cua_gym
from cua_gym.cli import main
from cua_gym.errors import ImageError, TaskError
from cua_gym.image.recipe import bundled_images, find_recipe
from cua_gym.image.store import ImageStore
from cua_gym.machine.base import MachineSpec
from cua_gym.machine.fake import FakeMachine
from cua_gym.machine.qemu.machine import QemuMachine
from cua_gym.machine.start import start_machine
from cua_gym.task import Suite
from tests.image.conftest import RECIPE, make_image
from tests.run.toy import make_suite


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A suite whose task wants the image ``tiny``, whose recipe it has; built in a cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    suite = make_suite(tmp_path / "suite")
    declared = suite.path / "tasks/type-word/task.toml"
    declared.write_text(declared.read_text().replace("[machine]", '[machine]\nimage = "tiny"'))
    recipe = suite.path / "images/tiny/recipe.toml"
    recipe.parent.mkdir(parents=True)
    recipe.write_text(RECIPE.replace('layers = ["base"]', 'layers = ["linux"]'))
    return suite


def build(suite: Suite) -> None:
    ImageStore(search=[suite.path / "images"], builder=make_image).ensure("tiny")


def test_a_recipe_of_a_suite_stands_on_the_bundled_layers(suite: Suite) -> None:
    """Only what differs is in the suite; the guest's daemon comes with cua_gym."""
    recipe = find_recipe("tiny", [suite.path / "images"])
    assert recipe.guestd == bundled_images() / "shared" / "guestd"
    assert recipe.layers == (bundled_images() / "shared" / "linux", suite.path / "images/tiny")


def test_a_machine_is_made_of_the_suites_image(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where no bundled recipe has that name; not built is an error that says so."""
    wanted = suite.task("type-word")
    with pytest.raises(ImageError, match="make image"):
        start_machine(wanted.spec, recipes=[wanted.images])
    build(suite)
    seen: list[Any] = []
    monkeypatch.setattr(QemuMachine, "start", lambda spec, **options: seen.append(options["image"]))
    start_machine(wanted.spec, recipes=[wanted.images])
    assert seen[0].name == "tiny"
    with pytest.raises(ImageError, match="no recipe is called 'tiny'"):
        start_machine(wanted.spec)


def test_an_image_without_a_recipe_is_found_before_anything_boots(suite: Suite) -> None:
    """Neither in the suite nor bundled: the file, its line, and near names."""
    declared = suite.path / "tasks/type-word/task.toml"
    declared.write_text(declared.read_text().replace('"tiny"', '"tinny"'))
    with pytest.raises(TaskError, match=r"task.toml:\d+: .*'tinny'.*there is tiny"):
        suite.task("type-word")


def test_an_episode_says_where_its_tasks_recipes_are(suite: Suite, tmp_path: Path) -> None:
    """By name and by folder, the task brings its suite along."""
    asked: list[Any] = []

    def start(spec: MachineSpec, **options: Any) -> FakeMachine:
        asked.append((spec.image, options["recipes"]))
        return FakeMachine(spec)

    for task in (suite.task("type-word"), suite.path / "tasks/type-word"):
        with cua_gym.make(task, runs=tmp_path / "runs", start=start) as env:
            env.reset(seed=0)
    assert asked == [("tiny", (suite.path / "images",))] * 2


def test_the_command_line_takes_a_suite(
    suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`run --suite` finds task and image; the image it has not got is named, and unscored."""
    monkeypatch.chdir(tmp_path)
    words = ["run", "type-word", "--suite", str(suite.path), "--agent", "null", "--json"]
    done = CliRunner().invoke(main, words)
    (row,) = json.loads(done.stdout)["outcomes"]
    assert (done.exit_code, row["outcome"], row["phase"]) == (3, "unscored", "boot")
    assert "image 'tiny' of the current recipe" in row["cause"]
    assert str(suite.path) not in str(bundled_images())

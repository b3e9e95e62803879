"""Recipes: the hash stands for all that reaches the image; mistakes are found before a build."""

from __future__ import annotations

from pathlib import Path

import pytest

from cua_gym.errors import ImageError
from cua_gym.image.build import steps_archive
from cua_gym.image.recipe import bundled_images, find_recipe, load_recipe, recipe_names

from .conftest import RECIPE


def test_the_bundled_recipes_are_valid() -> None:
    """Every recipe that ships loads, and debian-12 is among them."""
    names = recipe_names([bundled_images()])
    assert "debian-12" in names
    for name in names:
        assert find_recipe(name, [bundled_images()]).name == name


def test_no_recipe_names_a_mirror() -> None:
    """The host's own APT configuration says where packages come from."""
    for path in bundled_images().rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            text = path.read_text(encoding="utf-8")
            assert "deb.debian.org" not in text, path
            assert "archive.ubuntu.com" not in text, path


@pytest.mark.parametrize(
    "name",
    [
        "tiny/recipe.toml",
        "tiny/overlay/etc/tiny",
        "tiny/hooks/50-tiny.sh",
        "shared/base/overlay/usr/lib/tiny/run",
        "shared/base/hooks/10-base.sh",
        "shared/guestd/daemon.py",
        "shared/guestd/cua-guestd.service",
    ],
)
def test_hash_changes_with_every_file(images: Path, name: str) -> None:
    """One changed byte in any file that reaches the image is another image."""
    before = load_recipe(images / "tiny").hash
    with (images / name).open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    assert load_recipe(images / "tiny").hash != before


def test_hash_changes_with_added_renamed_and_removed_files(images: Path) -> None:
    """The set of files counts, not only their contents."""
    hashes = {load_recipe(images / "tiny").hash}
    added = images / "tiny/overlay/etc/added"
    added.write_text("", encoding="utf-8")
    hashes.add(load_recipe(images / "tiny").hash)
    added.rename(added.with_name("renamed"))
    hashes.add(load_recipe(images / "tiny").hash)
    (images / "tiny/overlay/etc/tiny").unlink()
    hashes.add(load_recipe(images / "tiny").hash)
    assert len(hashes) == 4


def test_hash_ignores_what_reaches_no_image(images: Path) -> None:
    """Editors, interpreters and the layers of other recipes make no new image."""
    before = load_recipe(images / "tiny").hash
    for name in ("tiny/overlay/etc/tiny~", "shared/guestd/__pycache__/x.pyc", "shared/other/x"):
        path = images / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x", encoding="utf-8")
    (images / "tiny/hooks/50-tiny.sh").chmod(0o755)
    assert load_recipe(images / "tiny").hash == before


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('suite = "bookworm"', "", "suite"),
        ('suite = "bookworm"', 'suite = "bookworm"\nmirror = "x"', "mirror"),
        ("virtual_gib = 4", "virtual_gib = 0", "virtual_gib"),
        ("uid = 1000", "uid = 0", "uid"),
        ('"pc-q35-7.2"', '"q35"', "pc-q35-7.2"),
        ('layers = ["base"]', 'layers = ["bass"]', "bass"),
        ('name = "tiny"', 'name = "other"', "other"),
        ("[disk]", "[disk", "TOML"),
        ('names = ["systemd-sysv"]', "names = []", "names"),
    ],
)
def test_mistakes_name_the_file_and_the_value(images: Path, old: str, new: str, says: str) -> None:
    """A wrong recipe is refused with the place of the mistake."""
    assert old in RECIPE
    (images / "tiny/recipe.toml").write_text(RECIPE.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ImageError) as error:
        load_recipe(images / "tiny")
    assert "recipe.toml" in str(error.value)
    assert says in str(error.value)


def test_unknown_names_suggest_near_ones(images: Path) -> None:
    """A typing mistake costs one line, not a look into the documentation."""
    with pytest.raises(ImageError, match="did you mean tiny"):
        find_recipe("tyni", [images])


def test_overlay_through_a_link_is_refused(images: Path) -> None:
    """A file under lib/ would replace the guest's link to usr/lib."""
    path = images / "tiny/overlay/lib/x"
    path.parent.mkdir()
    path.write_text("x", encoding="utf-8")
    with pytest.raises(ImageError, match="overlay/usr/"):
        load_recipe(images / "tiny")


def test_links_in_an_overlay_are_refused(images: Path) -> None:
    """A wheel cannot carry links, so a recipe that works in a checkout would not in a wheel."""
    (images / "tiny/overlay/etc/link").symlink_to("tiny")
    with pytest.raises(ImageError, match="is a link"):
        load_recipe(images / "tiny")


def test_two_hooks_of_one_name_are_refused(images: Path) -> None:
    """Hooks of all layers run in the order of their names."""
    (images / "tiny/hooks/10-base.sh").write_text("true\n", encoding="utf-8")
    with pytest.raises(ImageError, match=r"10-base\.sh"):
        load_recipe(images / "tiny")


def test_later_layers_win_and_hooks_are_ordered_across_layers(images: Path) -> None:
    """The recipe's own files come last; hook numbers count, not the layer."""
    own = images / "tiny/overlay/usr/lib/tiny/run"
    own.parent.mkdir(parents=True)
    own.write_text("mine\n", encoding="utf-8")
    (images / "shared/base/hooks/90-last.sh").write_text("true\n", encoding="utf-8")
    recipe = load_recipe(images / "tiny")
    assert recipe.overlay_files()["usr/lib/tiny/run"] == own
    assert [hook.name for hook in recipe.hooks()] == ["10-base.sh", "50-tiny.sh", "90-last.sh"]


def test_modes_follow_content_and_owners_are_root(images: Path, tmp_path: Path) -> None:
    """A checkout that lost its modes builds the same image: scripts run, the rest does not."""
    import io
    import tarfile

    data = steps_archive(load_recipe(images / "tiny"), "ssh-ed25519 AAAA it's")
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        modes = {entry.name: entry.mode for entry in archive}
        assert {entry.uid for entry in archive} | {entry.gid for entry in archive} == {0}
        run = archive.extractfile("tmp/cua-steps/run")
        assert run is not None
        script = run.read().decode()
    assert modes["usr/lib/tiny/run"] == 0o755
    assert modes["etc/tiny"] == 0o644
    assert modes["usr/lib/cua-gym/daemon.py"] == 0o644
    assert modes["etc/systemd/system/cua-guestd.service"] == 0o644
    assert script.index("10-base.sh") < script.index("50-tiny.sh")
    assert "export CUA_USER=user" in script
    assert """'"'"'""" in script, "values are quoted for the shell"

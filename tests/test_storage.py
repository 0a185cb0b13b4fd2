from __future__ import annotations

from pathlib import Path

import pytest

from litotes.storage import clear_staged, is_whole, remove_folder, write_folder, write_text


def fill(folder: Path) -> None:
    (folder / "a.txt").write_text("a" * 1000)
    (folder / "b.txt").write_text("b")


def test_a_folder_is_whole_when_it_appears(tmp_path: Path) -> None:
    write_folder(tmp_path / "x", fill)
    assert is_whole(tmp_path / "x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x"]


@pytest.mark.parametrize("damage", ["cut", "change", "remove", "manifest"])
def test_damage_is_noticed(tmp_path: Path, damage: str) -> None:
    write_folder(tmp_path / "x", fill)
    file = tmp_path / "x" / "a.txt"
    match damage:
        case "cut":
            file.write_text("a" * 10)
        case "change":
            file.write_text("a" * 999 + "b")
        case "remove":
            file.unlink()
        case "manifest":
            (tmp_path / "x" / "manifest.json").write_text("[]")
    assert not is_whole(tmp_path / "x")


def test_a_crash_while_filling_leaves_nothing_under_the_name(tmp_path: Path) -> None:
    def crash(folder: Path) -> None:
        fill(folder)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_folder(tmp_path / "x", crash)
    assert not (tmp_path / "x").exists()
    clear_staged(tmp_path)
    assert not list(tmp_path.iterdir())


def test_text_is_replaced_in_one_step(tmp_path: Path) -> None:
    write_text(tmp_path / "deep" / "file", "one")
    write_text(tmp_path / "deep" / "file", "two")
    assert (tmp_path / "deep" / "file").read_text() == "two"
    assert len(list((tmp_path / "deep").iterdir())) == 1


def test_removed_folders_are_gone(tmp_path: Path) -> None:
    write_folder(tmp_path / "x", fill)
    remove_folder(tmp_path / "x")
    assert not list(tmp_path.iterdir())

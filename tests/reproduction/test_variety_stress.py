"""Models of one variety under features: a run from texts to its file, and what runs say together
where the truth is known.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litotes.core.errors import UserError
from litotes.core.progress import ignore_progress
from reproduction.variety_jobs import VARIETIES, foreign_rewrites, studied_rewrites
from reproduction.variety_page import figure, replace_section, section
from reproduction.variety_stress import _parse, main, make_cases, plan
from reproduction.variety_summary import KINDS, summarise

REWRITES = ("isnt-it", "youse", "too-very")
N_TEXTS, N_REAL = 60, 150


def cases() -> list[dict[str, Any]]:
    found = []
    for rewrite in REWRITES:
        for number in range(N_TEXTS):
            text = f"text {number}"
            found.append({"rewrite": rewrite, "text": text, "rewritten": "x", "control": "y"})
    return found


def write_runs(folder: Path, *, seeds: int = 3, skip: str = "") -> list[Path]:
    """Models of which `isnt-it` changes 40 % of the answers, half as many when augmented; all else,
    controls included, 10 %. They are right 80 % of the time at home and 60 % elsewhere, augmented
    ones 72 % elsewhere.
    """
    generator = np.random.default_rng(0)
    files = []
    for kind in KINDS:
        for variety in VARIETIES:
            for seed in range(seeds):
                name = f"made-sentiment-{variety}-{kind}-{seed}"
                if name != skip:
                    content = run_content(kind, variety, seed, generator)
                    files.append(folder / f"{name}.json")
                    files[-1].write_text(json.dumps(content))
    return files


def run_content(kind: str, variety: str, seed: int, generator: np.random.Generator) -> Any:
    rates = {"isnt-it": 0.4 if kind == "plain" else 0.2}
    flips, control = [], []
    for case in cases():
        flips.append(int(generator.random() < rates.get(case["rewrite"], 0.1)))
        control.append(int(generator.random() < 0.1))
    tests = {}
    for place, tested_on in enumerate(VARIETIES):
        gold = np.arange(N_REAL) % 2
        rate = 0.8 if tested_on == variety else {"plain": 0.6, "augmented": 0.72}[kind]
        answers = np.where(generator.random(N_REAL) < rate, gold, 1 - gold)
        tests[tested_on] = {
            "labels": ["negative", "positive"],
            "texts": str(place),
            "gold": gold.tolist(),
            "answers": answers.tolist(),
            "probability": [0.8] * N_REAL,
        }
    zeros = [0.0] * len(flips)
    stress = {"flips": flips, "control_flips": control, "change": zeros, "control_change": zeros}
    return {
        "encoder": "made",
        "task": "sentiment",
        "trained_on": variety,
        "is_augmented": kind == "augmented",
        "seed": seed,
        "n_rewritten": 3,
        "recipe": {"training": {"epochs": 8, "batch_texts": 16}},
        "notes": [],
        "tests": tests,
        "cases": "same",
        "stress": stress,
        "seconds": {"training": 1.0, "answering": 2.0},
    }


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return summarise(write_runs(tmp_path_factory.mktemp("runs")), cases())


def test_the_planted_feature_is_found_and_no_other(found: dict[str, Any]) -> None:
    plain = {row["rewrite"]: row for row in found["features"] if row["kind"] == "plain"}
    assert set(plain) == set(REWRITES)
    assert plain["isnt-it"]["difference"]["value"] == pytest.approx(0.3, abs=0.05)
    assert plain["isnt-it"]["adjusted_p"] < 0.001
    low, high = plain["isnt-it"]["difference"]["interval"]
    assert 0 < low < 0.3 < high
    assert min(plain[name]["adjusted_p"] for name in ("youse", "too-very")) > 0.05


def test_home_and_foreign_features_are_those_of_the_atlas(found: dict[str, Any]) -> None:
    common = studied_rewrites()
    n_home = sum(variety in common[rewrite] for variety in VARIETIES for rewrite in REWRITES)
    rows = {(row["features"], row["trained_on"], row["kind"]): row for row in found["pooled"]}
    assert rows["home", "all", "plain"]["n"] == n_home * N_TEXTS
    assert rows["foreign", "all", "plain"]["n"] == (9 - n_home) * N_TEXTS
    assert "isnt-it" in foreign_rewrites("en-AU")
    assert set(foreign_rewrites("en-UK")) < set(common)


def test_augmentation_is_paired_by_seed(found: dict[str, Any]) -> None:
    gaps = {row["what"]: row for row in found["gaps"]}
    assert gaps["elsewhere"]["difference"]["value"] == pytest.approx(0.12, abs=0.04)
    assert gaps["elsewhere"]["difference"]["interval"][0] > 0
    assert gaps["gap"]["plain"]["value"] == pytest.approx(0.2, abs=0.05)
    assert gaps["gap"]["difference"]["value"] == pytest.approx(-0.12, abs=0.05)
    rows = [row for row in found["training"] if row["trained_on"] == "all"]
    assert {row["features"] for row in rows} == {"home", "foreign"}
    cell = found["real"][0]
    assert cell["difference"]["value"] == pytest.approx(
        cell["augmented"]["value"] - cell["plain"]["value"]
    )


def test_only_complete_seeds_are_counted(tmp_path: Path) -> None:
    files = write_runs(tmp_path, skip="made-sentiment-en-IN-augmented-2")
    assert summarise(files, cases())["seeds"][0]["seeds"] == [0, 1]
    with pytest.raises(UserError, match="run the rest first"):
        summarise(files[:3], cases())


def test_the_section_and_its_figure_follow_from_the_numbers(found: dict[str, Any]) -> None:
    text = section(found, "a machine")
    assert "`isnt-it` (made, sentiment)" in text
    assert "training with features helps" in text.replace("\n  ", " ")
    assert all(len(line) <= 100 for line in text.split("\n") if not line.startswith("|"))
    page = "# Title\n\n## What is not shown\n\nMore.\n"
    once = replace_section(page, text)
    assert replace_section(once, text) == once
    assert once.index("Models that know one variety") < once.index("## What is not shown")
    figure(found).draw_without_rendering()


def test_runs_from_texts_to_the_summary(besstie: Path, tiny_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["--besstie", str(besstie), "--encoder", f"tiny={tiny_folder}", "--out", str(out)]
    words += ["--seeds", "1", "--texts", "3", "--device", "cpu", "--set", "training.epochs=1"]
    jobs = plan(_parse(words), out)
    assert len(jobs) == 12
    augmented = jobs["tiny-sarcasm-en-IN-augmented-0"].recipe.data.rewrites
    assert augmented == foreign_rewrites("en-IN")
    assert jobs["tiny-sarcasm-en-IN-plain-0"].recipe.data.rewrites == []
    main(words)
    content = json.loads((out / "variety_stress.json").read_text())
    assert (content["n_runs"], len(content["real"])) == (12, 18)
    run = json.loads((out / "runs" / "tiny-sarcasm-en-IN-plain-0.json").read_text())
    n_cases = len(json.loads((out / "cases.json").read_text()))
    assert len(run["stress"]["flips"]) == n_cases > 10
    assert str(tmp_path) not in json.dumps(run)
    assert not list(out.glob("models/*"))
    (out / "runs" / "tiny-sarcasm-en-IN-plain-0.json").unlink()
    main(words)  # only what is missing is made again
    again = json.loads((out / "runs" / "tiny-sarcasm-en-IN-plain-0.json").read_text())
    assert again["stress"] == run["stress"]


def test_cases_are_the_same_again(besstie: Path, tmp_path: Path) -> None:
    from reproduction.variety_jobs import CaseJob

    files = [tmp_path / "one.json", tmp_path / "two.json"]
    for file in files:
        make_cases(CaseJob("too-very", f"besstie:{besstie}", 5, file), ignore_progress)
    first, second = (json.loads(file.read_text()) for file in files)
    assert first == second
    assert len(first) == 5
    assert "too late" in first[0]["rewritten"]

"""Python, the shell, HTTP and the page give the same answers: to pairs, with several labels, and
where a model is unsure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest
from page_server import Opens, Server
from pairs_model import PAIRS
from playwright.sync_api import Page, expect
from several_model import TEXTS as SEVERAL_TEXTS
from tiny_models import TEXTS

from litotes.cli.main import main
from litotes.prediction.answers import as_json
from litotes.prediction.predictor import Predictor

pytestmark = pytest.mark.slow

Asked = tuple[str, str | None]
ASKED: dict[str, list[Asked]] = {
    "pairs": list(PAIRS),
    "several": [(text, None) for text in SEVERAL_TEXTS],
    "unsure": [(text, None) for text in TEXTS[:2]],
}


@pytest.fixture(scope="module")
def folders(pairs_folder: Path, several_folder: Path, unsure_folder: Path) -> dict[str, Path]:
    return {"pairs": pairs_folder, "several": several_folder, "unsure": unsure_folder}


@pytest.fixture(scope="module")
def models(folders: Mapping[str, Path]) -> dict[str, Predictor]:
    return {name: Predictor.load(folder, device="cpu") for name, folder in folders.items()}


@pytest.fixture(scope="module")
def all_doors(models: dict[str, Predictor]) -> Iterator[Server]:
    running = Server(models)
    running.start()
    yield running
    running.stop()


def by_python(model: Predictor, text: str, pair: str | None) -> dict[str, Any]:
    return as_json(model.predict(text, pairs=pair), model.tasks)


def by_shell(
    folder: Path, text: str, pair: str | None, capsys: pytest.CaptureFixture[str]
) -> dict[str, Any]:
    line = ["predict", text, "--model", str(folder), "--device", "cpu", "--json"]
    capsys.readouterr()
    assert main(line if pair is None else [*line, "--pair", pair]) == 0
    (document,) = json.loads(capsys.readouterr().out)
    return dict(document)


def by_http(server: Server, model: str, text: str, pair: str | None) -> dict[str, Any]:
    body = {"text": text, "model": model} | ({} if pair is None else {"pair": pair})
    request = Request(
        f"{server.address}v1/predict",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urlopen(request, timeout=20) as response:
        (document,) = json.load(response)["predictions"]
    return dict(document)


def assert_same(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Labels exactly; probabilities as far as batches of other sizes may round."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if not isinstance(value, dict):
            assert found[name] == value
            continue
        answer = dict(found[name])
        for field in ("probability", "probabilities"):
            assert answer.pop(field) == pytest.approx(value[field], abs=1e-5)
        assert answer == {key: own for key, own in value.items() if key in answer}
        assert answer.keys() == value.keys() - {"probability", "probabilities"}


def assert_shown(page: Page, expected: Mapping[str, Any], tasks: Mapping[str, Any]) -> None:
    """What the page says: labels, "unsure" with its reason, rounded shares."""
    for task in tasks:
        answer, card = expected[task], page.locator(f'[data-task="{task}"]')
        if answer.get("unsure"):
            expect(card.locator(".said")).to_have_text("unsure")
            expect(card.locator(".doubt")).to_contain_text(answer["unsure"])
        elif isinstance(answer["label"], list):
            expect(card.locator(".said")).to_have_text(", ".join(answer["label"]) or "none of them")
            given = card.locator('[aria-current="true"] bdi')
            expect(given).to_have_text(answer["label"])
            for label, share in answer["probabilities"].items():
                row = card.locator("li").filter(has_text=label)
                (shown,) = row.locator(".share").all_inner_texts()
                assert abs(int("".join(filter(str.isdigit, shown))) - 100 * share) < 1.01
        else:
            expect(card.locator(".said")).to_contain_text(str(answer["label"]))
            (shown,) = card.locator(".said .share").all_inner_texts()
            percent = int("".join(filter(str.isdigit, shown)))
            assert abs(percent - 100 * answer["probability"]) < 1.01


@pytest.mark.parametrize("name", list(ASKED))
def test_all_four_doors_give_the_same_answer(
    name: str,
    models: Mapping[str, Predictor],
    folders: Mapping[str, Path],
    all_doors: Server,
    open_page: Opens,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page, kinds = open_page("#text=tea", at=all_doors), set()
    for text, pair in ASKED[name]:
        expected = by_python(models[name], text, pair)
        assert_same(by_shell(folders[name], text, pair, capsys), expected)
        assert_same(by_http(all_doors, name, text, pair), expected)
        view = {"text": text, "model": name} | ({} if pair is None else {"pair": pair})
        page.goto(f"{all_doors.address}#{urlencode(view)}")
        page.reload()
        assert_shown(page, expected, models[name].tasks)
        kinds |= {json.dumps(expected[task]) for task in models[name].tasks}
    assert len(kinds) >= len(ASKED[name]), "texts answered all alike would prove little"

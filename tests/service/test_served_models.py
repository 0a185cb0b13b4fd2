"""The cores are given to batches as is measured to be best."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import torch
from tiny_exports import export_unmeasured

from litotes.core.values import Prediction
from litotes.prediction import onnx_runtime
from litotes.prediction.predictor import Predictor
from litotes.service import models
from litotes.service.models import ServedModels, share_cores


@pytest.fixture(autouse=True)
def _threads_as_before() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def slow(
    trained_folder: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Predictor:
    """A predictor that takes so many milliseconds with one thread, and with more."""
    one, more = request.param
    predictor = Predictor.load(trained_folder, device="cpu", n_cores=1)

    def predict(texts: Sequence[str], **_: Any) -> list[Prediction]:
        time.sleep((one if torch.get_num_threads() == 1 else more) / 1000)
        return []

    monkeypatch.setattr(predictor, "predict", predict)
    monkeypatch.setattr(models, "n_cores", lambda: 4)
    return predictor


@pytest.mark.parametrize("slow", [(36, 201), (30, 24)], indirect=True)
def test_a_batch_has_one_core_where_more_do_not_help(slow: Predictor) -> None:
    share_cores([slow])
    assert torch.get_num_threads() == 1
    served = ServedModels({"slow": slow})
    assert served.n_at_once == 4
    (about,) = served.descriptions[0]["about"]
    assert about.endswith("1 thread a batch, up to 4 batches at the same time.")


@pytest.mark.parametrize("slow", [(40, 10)], indirect=True)
def test_a_batch_has_all_cores_where_they_help(slow: Predictor) -> None:
    share_cores([slow])
    assert torch.get_num_threads() == 4
    served = ServedModels({"slow": slow})
    assert served.n_at_once == 1
    assert served.descriptions[0]["about"][0].endswith("on cpu, 4 threads.")


def test_an_export_says_that_batches_share_the_cores(
    trained_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copytree(trained_folder, tmp_path / "run")
    export_unmeasured(folder)
    monkeypatch.setattr(onnx_runtime, "n_cores", lambda: 4)
    for n_cores, said in ((1, "1 thread a batch, up to 4 batches"), (None, "4 workers of one")):
        predictor = Predictor.load(folder, device="cpu", n_cores=n_cores)
        assert said in predictor.describe()[0]
    monkeypatch.setattr(onnx_runtime, "n_cores", lambda: 1)
    assert ", 1 thread; " in Predictor.load(folder, device="cpu").describe()[0]

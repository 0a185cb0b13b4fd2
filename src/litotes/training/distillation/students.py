"""One student: its first weights, its training, and its answers to the test."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from litotes.core.json_text import read_as
from litotes.core.progress import Watch, prefix_watch
from litotes.core.storage import write_json
from litotes.data.corpus import Corpus
from litotes.encoder import pretrained
from litotes.evaluation.evaluate import predict_corpus
from litotes.model.folder import is_model_folder
from litotes.prediction.predictor import Predictor
from litotes.training.distillation.matching import Matching, match_encoder
from litotes.training.distillation.shapes import Shape, make_start
from litotes.training.lessons import Lessons
from litotes.training.recipe import Recipe
from litotes.training.run import train

TEST_FILE = "test.json"
"""Its labels for the test texts; written last."""


@dataclass(frozen=True)
class StudentJob:
    """A student to train. folder: where its first weights and its answers to the test are kept."""

    name: str
    recipe: Recipe
    corpus: Corpus | None
    shape: Shape
    lessons: Lessons | None
    matching: Matching | None
    model_folder: Path
    folder: Path
    test: Corpus | None
    device: str | None

    @property
    def test_file(self) -> Path:
        return self.folder / TEST_FILE

    def is_done(self) -> bool:
        return is_model_folder(self.model_folder) and self.test_file.is_file()

    def test_answers(self) -> dict[str, list[int | float]]:
        """Its labels (by number) for the test texts of each task."""
        advice = "Delete it to test the student again."
        return read_as(self.test_file, dict[str, list[int | float]], advice=advice)


def run_student(job: StudentJob, watch: Watch) -> None:
    """Trains and tests a student, or does what is left of it."""
    watch = prefix_watch(watch, job.name)
    recipe = job.recipe
    if not job.shape.is_whole or job.matching is not None:
        recipe = recipe.changed(model__encoder=str(_write_start(job, watch)))
    run = train(
        recipe,
        job.model_folder,
        corpus=job.corpus,
        device=job.device,
        resume=True,
        watch=watch,
        lessons=job.lessons,
    )
    answers = {}
    if job.test is not None:
        predictor = Predictor(run.model, device=job.device)
        for task, found in predict_corpus(predictor, job.test, watch=watch).items():
            answers[task] = found.predicted().tolist()
    write_json(job.test_file, answers)


def _write_start(job: StudentJob, watch: Watch) -> Path:
    """The folder of the encoder that the student begins with; its weights are written last."""
    folder = job.folder / "start"
    if not (folder / "model.safetensors").is_file():
        start = make_start(job.shape, seed=job.recipe.seed)
        if job.matching is not None:
            states = job.folder / "matching"
            match_encoder(start, job.matching, states, device=job.device, watch=watch)
        pretrained.save(start, folder)
    return folder

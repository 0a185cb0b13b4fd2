"""Optional curves elsewhere: TensorBoard or MLflow, if they are installed. `history.jsonl` is
always written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from litotes.core.errors import UserError

Track = Callable[[int, Mapping[str, float]], None]


@contextmanager
def _none(folder: Path) -> Iterator[Track]:
    def track(step: int, values: Mapping[str, float]) -> None:
        """No tracker was chosen."""

    yield track


@contextmanager
def _tensorboard(folder: Path) -> Iterator[Track]:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise UserError(
            'tracker = "tensorboard" needs TensorBoard: `pip install tensorboard`, or set tracker ='
            ' "none".'
        ) from error
    with SummaryWriter(str(folder / "tensorboard")) as writer:

        def track(step: int, values: Mapping[str, float]) -> None:
            for name, value in values.items():
                writer.add_scalar(name, value, step)
            writer.flush()

        yield track


@contextmanager
def _mlflow(folder: Path) -> Iterator[Track]:
    try:
        import mlflow
    except ImportError as error:
        raise UserError(
            'tracker = "mlflow" needs MLflow: `pip install mlflow`, or set tracker = "none".'
        ) from error

    def track(step: int, values: Mapping[str, float]) -> None:
        mlflow.log_metrics(dict(values), step=step)

    # left open, it would take in the metrics of whatever comes next in this process
    with mlflow.start_run(run_name=folder.name, nested=True):
        yield track


TRACKERS: dict[str, Callable[[Path], AbstractContextManager[Track]]] = {
    "none": _none,
    "tensorboard": _tensorboard,
    "mlflow": _mlflow,
}

"""Optional curves elsewhere: TensorBoard or MLflow, if they are installed. `history.jsonl` is
always written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from litotes.core.errors import UserError

Track = Callable[[int, Mapping[str, float]], None]


def _none(folder: Path) -> Track:
    def track(step: int, values: Mapping[str, float]) -> None:
        """No tracker was chosen."""

    return track


def _tensorboard(folder: Path) -> Track:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise UserError(
            'tracker = "tensorboard" needs TensorBoard: `pip install tensorboard`, or set tracker ='
            ' "none".'
        ) from error
    writer = SummaryWriter(str(folder / "tensorboard"))

    def track(step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            writer.add_scalar(name, value, step)
        writer.flush()

    return track


def _mlflow(folder: Path) -> Track:
    try:
        import mlflow
    except ImportError as error:
        raise UserError(
            'tracker = "mlflow" needs MLflow: `pip install mlflow`, or set tracker = "none".'
        ) from error
    mlflow.start_run(run_name=folder.name, nested=True)

    def track(step: int, values: Mapping[str, float]) -> None:
        mlflow.log_metrics(dict(values), step=step)

    return track


TRACKERS: dict[str, Callable[[Path], Track]] = {
    "none": _none,
    "tensorboard": _tensorboard,
    "mlflow": _mlflow,
}

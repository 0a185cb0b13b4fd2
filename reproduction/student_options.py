"""What is asked of every script that trains students of a large encoder."""

from __future__ import annotations

import argparse
from pathlib import Path


def student_parser(about: str | None, *, n_seeds: int) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--teacher", default="mpnet", help="an encoder's name or folder")
    parser.add_argument("--student", default="minilm", help="likewise")
    parser.add_argument("--seeds", type=int, default=n_seeds)
    parser.add_argument("--workers", type=int, default=6, help="trainings at the same time")
    parser.add_argument("--epochs", type=int, help="of everything, for a trial")
    return parser

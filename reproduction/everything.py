"""All studies that need a GPU, in one go and in an order that keeps it busy.

    python -m reproduction.everything DATA OUT [--only NAMES] [--slots N] [--list]

DATA: a folder with besstie, bicodemix, glue, isarcasmeval2022, multi30k, novels.txt, sarcasm-sign,
tweeteval-irony, twitter, ud-ewt and vader in it. Needs `litotes encoders get mpnet`. Each study is
a command of its own, with a log in OUT/logs; what is done is not begun again, what was stopped goes
on, and a study that fails does not end the others. --list: the commands, and nothing else.

Studies of the large encoder come first, a few trainings at a time: their kernels fill the GPU, and
a small training beside them waits for each of its own (a step of 24 ms alone took 104 beside twelve
of them). Then the small ones, as many at a time as there are cores.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LARGE_AT_ONCE = 6
"""Trainings of the large encoder that fit a GPU of 140 GB."""
PAUSE = 0.5
"""Seconds between two looks at what is running."""


@dataclass(frozen=True)
class Study:
    """words: of `python -m`. slots: processes it keeps busy. after: studies that it needs."""

    name: str
    words: str
    slots: int
    is_large: bool = False
    after: tuple[str, ...] = ()

    def command(self, data: Path, out: Path) -> list[str]:
        words = [word.format(data=data, out=out) for word in shlex.split(self.words)]
        return [sys.executable, "-m", *words]


BESSTIE = " --set sources.besstie=besstie:{data}/besstie"
ALL_THREE = (
    f"{BESSTIE} --set sources.twitter=twitter:{{data}}/twitter"
    " --set sources.bicodemix=bicodemix:{data}/bicodemix?classes=2"
)
ADAPT = (
    "litotes pretrain reproduction/adapt.toml --resume"
    """ --set 'data.source=["besstie:{data}/besstie","twitter:{data}/twitter?min_words=1"]'"""
)
STUDY = "litotes study reproduction/study_"
TRANSLATION = "--out {out}/translation --work {out}/translation/runs"
STUDIES = (
    Study("builtin", "reproduction.builtin_students {data} {out}/builtin", 6, True),
    Study("adapt-mpnet", f"{ADAPT} --set model.encoder=mpnet --out runs/adapted/mpnet", 1, True),
    Study("adapt-minilm", f"{ADAPT} --out runs/adapted/minilm", 1, True),
    Study(
        "encoders",
        f"{STUDY}encoders.toml --out {{out}}/encoders --workers 5{BESSTIE}",
        5,
        True,
        after=("adapt-mpnet", "adapt-minilm"),
    ),
    Study("together", f"{STUDY}together.toml --out {{out}}/together --workers 5{BESSTIE}", 5, True),
    Study("students", "reproduction.besstie_students {data} {out}/students", 6, True),
    Study(
        "pruning",
        f"{STUDY}pruning_base.toml --out {{out}}/pruning --workers 5{ALL_THREE}",
        5,
        True,
    ),
    Study(
        "crisp",
        f"{STUDY}crisp.toml --out {{out}}/crisp --workers 5"
        " --set sources.sst2=glue/sst2:{data}/glue",
        5,
        True,
    ),
    Study("alta", "reproduction.alta {data} {out}/alta", 6, True),
    Study(
        "prune-base",
        "bench.prune_loss {data} --out {out}/prune-base --encoder mpnet --learning-rate 3e-5"
        " --targets 2,3,4 --seeds 3 --cases google,reddit,sarcasm --workers 5 --device cuda",
        5,
        True,
    ),
    Study(
        "variety",
        "reproduction.variety_stress --besstie {data}/besstie --encoder minilm --encoder mpnet"
        " --out {out}/variety --workers 6 --device cuda",
        6,
        True,
    ),
    Study(
        "multi30k",
        f"reproduction.translation multi30k --data {{data}}/multi30k {TRANSLATION} --processes 10",
        10,
    ),
    Study(
        "sign",
        f"reproduction.translation sign --data {{data}}/sarcasm-sign {TRANSLATION} --seeds 3"
        " --processes 3",
        3,
    ),
    Study(
        "alpha",
        f"{STUDY}alpha.toml --out {{out}}/alpha --workers 4"
        " --set sources.sst2=glue/sst2:{data}/glue",
        4,
    ),
    Study(
        "tagging",
        "reproduction.tagging --ud-ewt {data}/ud-ewt --sign {data}/sarcasm-sign"
        " --irony {data}/tweeteval-irony --out {out}/tagging --device cuda",
        1,
    ),
    Study(
        "novels",
        "litotes pretrain recipes/pretrain.toml --resume --out {out}/novels"
        " --set data.source={data}/novels.txt --set model.scratch.n_layers=4"
        " --set model.scratch.width=256 --set model.scratch.n_attention_heads=4"
        " --set model.scratch.n_vocabulary=8192 --set training.epochs=20"
        " --set training.batch_texts=64",
        1,
    ),
    Study(
        "prune-loss",
        "bench.prune_loss {data} --out {out}/prune-loss --workers 10 --device cuda",
        10,
    ),
    Study("paper", f"{STUDY}paper.toml --out {{out}}/paper --workers 8{ALL_THREE}", 8),
)


class Runner:
    """Begins studies in their order as slots become free, the large ones first."""

    def __init__(self, studies: Iterable[Study], data: Path, out: Path, *, n_slots: int) -> None:
        self.data, self.out, self.n_slots = data, out, n_slots
        self.waiting = [one for one in studies if not self._mark(one).is_file()]
        self.failed: dict[str, int] = {}
        self.running: dict[str, tuple[Study, subprocess.Popen[bytes], float]] = {}
        for folder in ("logs", "done"):
            (out / folder).mkdir(parents=True, exist_ok=True)

    def run(self) -> Mapping[str, int]:
        """The exit codes of those that failed, by name."""
        try:
            while self.waiting or self.running:
                self._end_finished()
                self._begin()
                time.sleep(PAUSE)
        finally:
            self._stop()
        return self.failed

    def _begin(self) -> None:
        for study in [one for one in self.waiting if self._may_begin(one)]:
            used = sum(one.slots for one, _, _ in self.running.values())
            n_slots = LARGE_AT_ONCE if study.is_large else self.n_slots
            if self.running and used + study.slots > n_slots:
                continue
            self.waiting.remove(study)
            command = study.command(self.data, self.out)
            with (self.out / "logs" / f"{study.name}.log").open("ab") as log:
                process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)  # noqa: S603
            self.running[study.name] = study, process, time.monotonic()
            print(f"begun: {study.name}", flush=True)

    def _may_begin(self, study: Study) -> bool:
        """What it needs is done, and no large study is left beside a small one."""
        unfinished = [*self.waiting, *(one for one, _, _ in self.running.values())]
        if any(one.name in study.after for one in unfinished):
            return False
        return study.is_large or not any(one.is_large for one in unfinished)

    def _end_finished(self) -> None:
        for name, (study, process, begun) in list(self.running.items()):
            code = process.poll()
            if code is None:
                continue
            del self.running[name]
            seconds = time.monotonic() - begun
            print(f"{'done' if code == 0 else 'FAILED'}: {name}, {seconds:.0f} s", flush=True)
            if code == 0:
                self._mark(study).write_text(f"{seconds:.0f} s\n", "utf-8")
            else:
                self.failed[name] = code
                self._give_up_on(name)

    def _give_up_on(self, name: str) -> None:
        """Nothing that needs it is begun."""
        for study in [one for one in self.waiting if name in one.after]:
            self.waiting.remove(study)
            self.failed[study.name] = -1
            print(f"left out: {study.name}, which needs {name}", flush=True)
            self._give_up_on(study.name)

    def _stop(self) -> None:
        """Each command ends by itself on SIGTERM, with what it has kept."""
        for _, process, _ in self.running.values():
            os.killpg(process.pid, signal.SIGTERM)
        for _, process, _ in self.running.values():
            process.wait()

    def _mark(self, study: Study) -> Path:
        return self.out / "done" / study.name


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", help="names with commas between")
    parser.add_argument("--slots", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--list", action="store_true", help="show the commands, run nothing")
    given = parser.parse_args(words)
    studies = list(STUDIES)
    if given.only is not None:
        wanted = given.only.split(",")
        studies = [study for study in STUDIES if study.name in wanted]
        known = {study.name for study in STUDIES}
        if unknown := set(wanted) - known:
            parser.error(f"No study is called {' or '.join(unknown)}. Known: {', '.join(known)}.")
    data, out = given.data.resolve(), given.out.resolve()
    if given.list:
        for study in studies:
            print(f"{study.name}: {shlex.join(['python', *study.command(data, out)[1:]])}")
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what is running ends as well
    failed = Runner(studies, data, out, n_slots=given.slots).run()
    if failed:
        raise SystemExit(f"{len(failed)} failed: {', '.join(failed)}. Their logs: {out / 'logs'}.")


if __name__ == "__main__":
    main()

"""Multi30k and Sarcasm SIGN with an encoder-decoder: softmax, 1.5-entmax and learned α.

Correia, Niculae & Martins 2019 (arXiv 1909.00015), on captions; Peled and Reichart 2017 (arXiv
1704.06836) for `sign`. On a GPU, from the repository root, with data wherever it lies:

    export PYTHONPATH=src PYTHONUNBUFFERED=1
    python -m reproduction.translation time --data DATA/multi30k --out OUT
    python -m reproduction.translation multi30k --data DATA/multi30k --out OUT --work /tmp/work \
        --seeds 5 --processes 15 --mps
    python -m reproduction.translation sign --data DATA/sarcasm-sign --out OUT --work /tmp/work \
        --seeds 3 --processes 9 --mps

`time` first, alone: seconds a step of each weighting, in turns. Then 30 runs of 30 epochs (2
directions × 3 weightings × 5 seeds), 15 at a time on 16 cores; --mps lets their kernels run at the
same time where NVIDIA's service can be started, and goes on without it where not. One file is
written per command, OUT/multi30k.json and so on, anew after every finished run: a run whose file
lies in --work is not repeated, and --stop-after SECONDS starts no new run after so long.

BLEU, chrF and sentiment need sacrebleu and the built-in model, which such a machine may lack:
`python -m reproduction.translation_page` adds them afterwards, and writes the page.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from reproduction.mps import start_mps, stop_mps

WEIGHTINGS: dict[str, dict[str, Any]] = {
    "softmax": {"weighting": "softmax"},
    "entmax": {"weighting": "entmax", "weighting_options": {"alpha": 1.5}},
    "learned": {"weighting": "entmax", "weighting_options": {"alpha": "learned"}},
}
SIGN_WAYS: dict[str, dict[str, Any]] = {
    "plain": {"options": "?plain=yes"},
    "minilm": {
        "options": "?plain=yes",
        "model": {"encoder": "minilm", "width": None, "inner_width": None, "n_attention_heads": 12},
        "training": {"learning_rate": 3e-4},
    },
}
"""More ways for Sarcasm SIGN, with softmax: learning as well that plain texts stay as they are, and
that around an encoder that knows English.
"""
DIRECTIONS = ("de-en", "en-de")
RECIPES = {"multi30k": "multi30k.toml", "sign": "interpret.toml"}
ROOT = Path(__file__).parent.parent
TIMED_STEPS, WARM_STEPS = 60, 15


@dataclass(frozen=True)
class Job:
    """One training. direction: of Multi30k; empty for Sarcasm SIGN."""

    corpus: str
    direction: str
    weighting: str
    seed: int

    @property
    def name(self) -> str:
        return "-".join(filter(None, (self.corpus, self.direction, self.weighting, str(self.seed))))


@dataclass(frozen=True)
class Options:
    """What all runs share."""

    data: str
    work: str
    device: str | None
    precision: str
    epochs: int | None
    batch_pieces: int | None
    most_pairs: int | None
    processes: int

    def source(self, job: Job) -> str:
        if job.corpus == "sign":
            return f"sign:{self.data}{SIGN_WAYS.get(job.weighting, {}).get('options', '')}"
        start, end = job.direction.split("-")
        return f"multi30k:{self.data}?from={start}&to={end}"


def make_recipe(job: Job, options: Options) -> Any:
    from litotes.training.translation import read_translation_recipe
    from litotes.training.translation.recipe import translation_recipe_of

    content = read_translation_recipe(ROOT / "recipes" / RECIPES[job.corpus]).model_dump()
    content["seed"] = job.seed
    content["data"]["source"] = options.source(job)
    way = SIGN_WAYS.get(job.weighting, {})
    content["model"] |= WEIGHTINGS.get(job.weighting, way.get("model", {}))
    content["training"] |= {"precision": options.precision, "checkpoint_seconds": 600.0}
    content["training"] |= way.get("training", {})
    for name in ("epochs", "batch_pieces"):
        if getattr(options, name) is not None:
            content["training"][name] = getattr(options, name)
    return translation_recipe_of(content, job.name)


def load_texts(job: Job, options: Options) -> Any:
    from litotes.data.parallel import load_parallel

    texts = load_parallel(options.source(job))
    n = options.most_pairs
    if n is None:
        return texts
    return replace(texts, train=texts.train[:n], valid=texts.valid[:n], test=texts.test[:n])


def run_job(job: Job, options: Options) -> dict[str, Any]:
    """Trains, translates the test texts, looks into the attention; what is kept of it."""
    import torch

    from litotes.training.translation import Translator, train_translation
    from litotes.training.translation.attention_statistics import measure_attention
    from litotes.training.translation.pairs import make_pair_set

    torch.set_num_threads(1 if options.processes > 1 else torch.get_num_threads())
    began = time.monotonic()
    recipe, texts = make_recipe(job, options), load_texts(job, options)
    folder = Path(options.work) / job.name
    run = train_translation(recipe, folder, texts=texts, device=options.device, resume=True)
    translator = Translator.load(folder, device=options.device)
    if options.precision == "tf32":
        torch.set_float32_matmul_precision("highest")
    lines = (folder / "translations.jsonl").read_text("utf-8").splitlines()
    pairs = make_pair_set(texts.valid, translator.tokenizer)
    scores = run.scores
    result = asdict(job) | {
        "recipe": recipe.model_dump(mode="json"),
        "data": {"sha256": texts.fingerprint(), "n_test": len(texts.test)},
        "device": device_name(translator.network.device),
        "processes": options.processes,
        "history": scores["history"],
        "steps": scores["steps"],
        "seconds": scores["seconds"],
        "seconds_in_all": time.monotonic() - began,
        "valid_loss": scores["valid_loss"],
        "n_weights": sum(one.numel() for one in translator.network.parameters()),
        "attention": measure_attention(translator.network, pairs),
        "outputs": [json.loads(line)["output"] for line in lines],
    }
    file = Path(options.work) / f"{job.name}.json"
    file.with_suffix(".part").write_text(json.dumps(result), "utf-8")
    file.with_suffix(".part").replace(file)
    shutil.rmtree(folder)  # the weights are not kept
    return result


def device_name(device: Any) -> str:
    import torch

    return torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"


def run_all(jobs: list[Job], options: Options, out: Path, *, stop_after: float) -> None:
    """Side by side; the file holds all that is done, at any time."""
    began = time.monotonic()
    files = {job: Path(options.work) / f"{job.name}.json" for job in jobs}
    waiting = [job for job, file in files.items() if not file.is_file()]
    done = [json.loads(files[job].read_text("utf-8")) for job in jobs if job not in waiting]
    write_results(out, done)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.processes, mp_context=context) as pool:
        running = {pool.submit(run_job, job, options): job for job in waiting}
        for future in as_completed(running):
            seconds, name = time.monotonic() - began, running[future].name
            if future.cancelled():
                continue
            if future.exception() is not None:
                print(f"{seconds:6.0f} s  {name:<28} failed: {future.exception()!r}")
                continue
            done.append(future.result())
            write_results(out, done)
            loss, step = done[-1]["valid_loss"], done[-1]["seconds"] / max(done[-1]["steps"], 1)
            print(
                f"{seconds:6.0f} s  {name:<28} valid loss {loss:.3f}  {1000 * step:.1f} ms a step"
            )
            if seconds > stop_after:
                for other in running:
                    other.cancel()


def write_results(out: Path, done: list[dict[str, Any]]) -> None:
    order = sorted(done, key=lambda one: (one["direction"], one["weighting"], one["seed"]))
    part = out.with_suffix(".part")
    part.write_text(json.dumps({"runs": order}), "utf-8")
    part.replace(out)


def time_steps(options: Options, out: Path, *, n_steps: int, n_warm: int) -> None:
    """Seconds a step of each weighting, in three turns, nothing else running."""
    import torch

    from litotes.core.machine import choose_device
    from litotes.training.epoch_loop import RunContext
    from litotes.training.processes import join_processes
    from litotes.training.translation.loop import TranslationLoop
    from litotes.training.translation.pairs import make_pair_set
    from litotes.training.translation.start import Start

    device = choose_device(options.device)
    if options.precision == "tf32":
        torch.set_float32_matmul_precision("high")
    loops = {}
    with join_processes(device.type) as processes:
        for name in WEIGHTINGS:
            job = Job("multi30k", "de-en", name, 0)
            start, texts = Start(make_recipe(job, options)), load_texts(job, options)
            tokenizer = start.choose_tokenizer(texts.train)
            network = start.make_model(tokenizer).to(device)
            sets = [make_pair_set(part, tokenizer) for part in (texts.train, texts.valid)]
            context = RunContext(device, Path(options.work), "time", processes)
            loops[name] = TranslationLoop(network, *sets, start.recipe, context=context)
        found: dict[str, list[float]] = {name: [] for name in loops}
        for turn in range(3):
            for name, loop in loops.items():
                batches = (loop._epoch_batches() * n_steps)[: n_steps + n_warm]
                for number, places in enumerate(batches):
                    if number == n_warm:
                        synchronize(device)
                        began = time.monotonic()
                    loop._step(places)
                synchronize(device)
                found[name].append((time.monotonic() - began) / n_steps)
                print(f"turn {turn + 1}: {name:<10} {1000 * found[name][-1]:.2f} ms a step")
    middle = {name: statistics.median(values) for name, values in found.items()}
    content = {"device": device_name(device), "turns": found, "seconds_a_step": middle}
    out.write_text(json.dumps(content | {"options": asdict(options)}), "utf-8")


def synchronize(device: Any) -> None:
    import torch

    if device.type == "cuda":
        torch.cuda.synchronize()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("what", choices=("multi30k", "sign", "time"))
    parser.add_argument("--data", required=True, help="the folder of the corpus")
    parser.add_argument("--out", type=Path, required=True, help="where the results go")
    parser.add_argument("--work", type=Path, help="where runs lie (default: OUT/work)")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--directions", nargs="+", default=list(DIRECTIONS), choices=DIRECTIONS)
    parser.add_argument(
        "--weightings", nargs="+", choices=[*WEIGHTINGS, *SIGN_WAYS], help="and ways of `sign`"
    )
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--batch-pieces", type=int)
    parser.add_argument("--most-pairs", type=int, help="of each part, for a trial")
    parser.add_argument("--device")
    parser.add_argument("--precision", default="tf32")
    parser.add_argument("--steps", type=int, default=TIMED_STEPS, help="of `time`")
    parser.add_argument("--stop-after", type=float, default=float("inf"))
    parser.add_argument("--mps", action="store_true")
    return parser.parse_args()


def plan(
    what: str, directions: Sequence[str], weightings: Sequence[str] | None, n_seeds: int
) -> list[Job]:
    """All runs, whole seeds first: a stopped study is still balanced."""
    is_sign = what == "sign"
    known = [*WEIGHTINGS, *(SIGN_WAYS if is_sign else ())]
    jobs = [
        Job(what, direction, name, seed)
        for seed in range(n_seeds)
        for direction in ([""] if is_sign else directions)
        for name in weightings or known
    ]
    # the slowest first within a seed, so that none is left alone at the end
    return sorted(jobs, key=lambda job: (job.seed, -known.index(job.weighting)))


def main() -> None:
    given = parse()
    work = given.work or given.out / "work"
    for folder in (given.out, work):
        folder.mkdir(parents=True, exist_ok=True)
    options = Options(
        given.data,
        str(work),
        given.device,
        given.precision,
        given.epochs,
        given.batch_pieces,
        given.most_pairs,
        given.processes,
    )
    out = given.out / f"{given.what}.json"
    if given.what == "time":
        time_steps(options, out, n_steps=given.steps, n_warm=min(WARM_STEPS, given.steps))
        return
    jobs = plan(given.what, given.directions, given.weightings, given.seeds)
    has_mps = given.mps and start_mps()
    print(f"{len(jobs)} runs, {given.processes} at a time, MPS: {has_mps}")
    try:
        run_all(jobs, options, out, stop_after=given.stop_after)
    finally:
        if has_mps:
            stop_mps()


if __name__ == "__main__":
    main()

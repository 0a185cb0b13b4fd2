"""Multi30k and Sarcasm SIGN with an encoder-decoder: softmax, 1.5-entmax and learned α.

Correia, Niculae & Martins 2019 (arXiv 1909.00015), on captions; Peled and Reichart 2017 (arXiv
1704.06836) for `sign`. On a GPU, from the repository root, with data wherever it lies:

    export PYTHONPATH=src PYTHONUNBUFFERED=1
    python -m reproduction.translation time --data DATA/multi30k --out OUT
    python -m reproduction.translation multi30k --data DATA/multi30k --out OUT --work /tmp/work \
        --seeds 5 --processes 15 --mps
    python -m reproduction.translation sign --data DATA/sarcasm-sign --out OUT --work /tmp/work \
        --seeds 3 --processes 9 --mps

    python -m reproduction.translation numbers --data DATA --out OUT

`time` first, alone: seconds a step of each weighting, in turns. Then 30 runs of 30 epochs (2
directions × 3 weightings × 5 seeds), 15 at a time on 16 cores; --mps lets their kernels run at the
same time where NVIDIA's service can be started, and goes on without it where not. One file is
written per command, OUT/multi30k.json and so on, anew after every finished run: a run whose file
lies in --work is not repeated, and --stop-after SECONDS starts no new run after so long. `numbers`
needs sacrebleu, which such a machine may lack, and writes OUT/translation.json.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from litotes.core.storage import write_json
from litotes.data.parallel import Pair, load_parallel
from litotes.prediction.predictor import Predictor
from litotes.training.translation.scores import draw_samples, resample_scores, score_translations
from reproduction.attention_counts import KINDS

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
    from litotes.training.recipe import TranslationRecipe

    content = TranslationRecipe.read(ROOT / "recipes" / RECIPES[job.corpus]).model_dump()
    content["seed"] = job.seed
    content["data"]["source"] = options.source(job)
    way = SIGN_WAYS.get(job.weighting, {})
    content["model"] |= WEIGHTINGS.get(job.weighting, way.get("model", {}))
    content["training"] |= {"precision": options.precision, "checkpoint_seconds": 600.0}
    content["training"] |= way.get("training", {})
    for name in ("epochs", "batch_pieces"):
        if getattr(options, name) is not None:
            content["training"][name] = getattr(options, name)
    return TranslationRecipe.of(content, job.name)


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

    from litotes.training.run import train
    from litotes.training.translation import Translator
    from litotes.training.translation.pairs import make_pair_set
    from reproduction.attention_counts import measure_attention

    torch.set_num_threads(1 if options.processes > 1 else torch.get_num_threads())
    began = time.monotonic()
    recipe, texts = make_recipe(job, options), load_texts(job, options)
    folder = Path(options.work) / job.name
    run = train(recipe, folder, corpus=texts, device=options.device, resume=True)
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
    from litotes.training.objective import RunContext
    from litotes.training.processes import join_processes
    from litotes.training.translation.course import Start, TranslationObjective
    from litotes.training.translation.pairs import make_pair_set

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
            context = RunContext(device, Path(options.work), processes=processes)
            loops[name] = TranslationObjective(network, *sets, start.recipe, context)
        found: dict[str, list[float]] = {name: [] for name in loops}
        for turn in range(3):
            for name, loop in loops.items():
                loop.model.train()
                batches = (loop.batches(0) * n_steps)[: n_steps + n_warm]
                for number, places in enumerate(batches):
                    if number == n_warm:
                        synchronize(device)
                        began = time.monotonic()
                    loop.take_step(places, number)
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
    parser.add_argument("what", choices=("multi30k", "sign", "time", "numbers"))
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
    if given.what == "numbers":
        write_json(given.out / "translation.json", collect(given.out, given.data, given.most_pairs))
        return
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


# NVIDIA's service that lets kernels of several processes run on a GPU at the same time.


def start_mps() -> bool:
    """Kernels of several processes at once; False, and nothing changed, where it does not work."""
    control = shutil.which("nvidia-cuda-mps-control")
    if control is None:
        return False
    names = {"CUDA_MPS_PIPE_DIRECTORY": "/tmp/mps", "CUDA_MPS_LOG_DIRECTORY": "/tmp/mps-log"}  # noqa: S108
    for name, folder in names.items():
        Path(folder).mkdir(exist_ok=True)
        os.environ[name] = folder
    try:
        subprocess.run([control, "-d"], check=True, timeout=20)  # noqa: S603
        probe = "import torch; print(float(torch.ones(8, device='cuda').sum()))"
        subprocess.run([sys.executable, "-c", probe], check=True, timeout=60)  # noqa: S603
    except (OSError, subprocess.SubprocessError) as error:
        print(f"without MPS: {error}")
        stop_mps()
        for name in names:
            del os.environ[name]
        return False
    return True


def stop_mps() -> None:
    control = shutil.which("nvidia-cuda-mps-control")
    if control is not None:
        subprocess.run([control], input=b"quit\n", check=False, timeout=60)  # noqa: S603


# From the outputs of `reproduction.translation` to numbers: BLEU, chrF, differences, attention.
#
# Intervals over seeds are Student's, of differences to softmax paired by seed; those over texts
# come
# from 1,000 samples of the test texts, the same for all runs, of the mean over seeds.

METRICS = ("bleu", "chrf")
BASELINE = "softmax"

Run = Mapping[str, Any]


def summarise(runs: Sequence[Run], test: Sequence[Pair]) -> dict[str, Any]:
    """Of the runs of one corpus and direction: {weighting: numbers}."""
    references = [pair.targets for pair in test]
    draws = draw_samples(len(test))
    found, samples = {}, {}
    for weighting, some in by_weighting(runs).items():
        scores = [score_translations(run["outputs"], references).as_json() for run in some]
        found[weighting] = _numbers(some, scores)
        samples[weighting] = mean_samples(some, references, draws)
    for weighting in found:
        found[weighting]["difference"] = difference(samples, found, weighting)
    return found


def collect(results: Path, data: str, most: int | None) -> dict[str, Any]:
    """What was measured of both corpora, as the page's numbers."""
    numbers: dict[str, Any] = {}
    for file in sorted(results.glob("*.json")):
        content = json.loads(file.read_text("utf-8"))
        if file.stem == "time":
            numbers["time"] = content
        elif file.stem == "multi30k":
            for direction in {run["direction"] for run in content["runs"]}:
                start, end = direction.split("-")
                test = load_parallel(f"multi30k:{data}/multi30k?from={start}&to={end}").test[:most]
                some = [run for run in content["runs"] if run["direction"] == direction]
                numbers.setdefault("multi30k", {})[direction] = summarise(some, test)
        elif file.stem == "sign":
            test = load_parallel(f"sign:{data}/sarcasm-sign").test[:most]
            predictor = Predictor.load("builtin", device="cpu")
            numbers["sign"] = summarise_sign(content["runs"], test, predictor)
            numbers["shown"] = shown_outputs(content["runs"], test)
    return numbers


def by_weighting(runs: Sequence[Run]) -> dict[str, list[Run]]:
    grouped: dict[str, list[Run]] = {}
    for name in (*WEIGHTINGS, *SIGN_WAYS):
        some = [run for run in runs if run["weighting"] == name]
        if some:
            grouped[name] = sorted(some, key=lambda run: run["seed"])
    return grouped


def _numbers(runs: Sequence[Run], scores: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    numbers: dict[str, Any] = {
        "seeds": [run["seed"] for run in runs],
        "steps": runs[0]["steps"],
        "n_weights": runs[0]["n_weights"],
        "valid_loss": float(np.mean([run["valid_loss"] for run in runs])),
        "signature": {metric: scores[0][metric]["signature"] for metric in METRICS},
        "attention": _attention([run["attention"] for run in runs]),
    }
    for metric in METRICS:
        values = [one[metric]["value"] for one in scores]
        numbers[metric] = {"mean": float(np.mean(values)), "values": values}
        numbers[metric]["interval"] = over_seeds(values)
    return numbers


def over_seeds(values: Sequence[float]) -> list[float] | None:
    """95 %, Student's t; None for a single seed."""
    if len(values) < 2:
        return None
    spread = float(np.std(values, ddof=1)) / len(values) ** 0.5
    half = float(stats.t.ppf(0.975, len(values) - 1)) * spread
    mean = float(np.mean(values))
    return [mean - half, mean + half]


def mean_samples(
    runs: Sequence[Run], references: Sequence[Sequence[str]], draws: NDArray[np.int64]
) -> dict[str, NDArray[np.float64]]:
    """{metric: (sample,)}, the mean over seeds."""
    found = [resample_scores(run["outputs"], references, draws) for run in runs]
    return {metric: np.mean([one[metric] for one in found], axis=0) for metric in METRICS}


def difference(
    samples: Mapping[str, Any], found: Mapping[str, Any], weighting: str
) -> dict[str, Any] | None:
    """To softmax, with the interval over texts, and that over seeds."""
    if weighting == BASELINE or BASELINE not in samples:
        return None
    result = {}
    for metric in METRICS:
        moved = samples[weighting][metric] - samples[BASELINE][metric]
        value = found[weighting][metric]["mean"] - found[BASELINE][metric]["mean"]
        result[metric] = {"value": value, "interval": over_texts(moved)}
        result[metric]["over_seeds"] = _paired(found[weighting], found[BASELINE], metric)
    return result


def over_texts(moved: NDArray[np.float64]) -> list[float]:
    """95 % of the samples. moved: (sample,)"""
    low, high = np.percentile(moved, [2.5, 97.5]).tolist()
    return [low, high]


def _paired(one: Mapping[str, Any], other: Mapping[str, Any], metric: str) -> list[float] | None:
    """Of the differences between runs of the same seed; None where the seeds differ."""
    if one["seeds"] != other["seeds"]:
        return None
    pairs = zip(one[metric]["values"], other[metric]["values"], strict=True)
    return over_seeds([mine - theirs for mine, theirs in pairs])


def _attention(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """density, diversity: {kind: (layer,)}, means over seeds and attention heads; alpha: {kind:
    (layer, attention_head of all seeds)}.
    """
    result: dict[str, Any] = {"density": {}, "diversity": {}, "alpha": {}}
    for kind in KINDS:
        density = np.array([one["density"][kind] for one in runs])  # (seed, layer, attention_head)
        result["density"][kind] = density.mean((0, 2)).tolist()
        diversity = np.array([one["diversity"][kind] for one in runs])  # (seed, layer)
        result["diversity"][kind] = diversity.mean(0).tolist()
        alpha = np.array([one["alpha"][kind] for one in runs])
        by_layer = alpha.transpose(1, 0, 2) if alpha.size else np.zeros((0, 0, 0))
        result["alpha"][kind] = [layer.flatten().tolist() for layer in by_layer]
    return result


# From interpretations of Sarcasm SIGN to numbers: BLEU and chrF beside saying the tweet again, and
# what the built-in model thinks of the sentiment.
#
# Intervals come from 1,000 samples of the test tweets, of the mean over seeds.

N_SHOWN = 20


def summarise_sign(runs: Sequence[Run], test: Sequence[Pair], predictor: Any) -> dict[str, Any]:
    """{"copy": the tweet again, weighting: numbers, "people": numbers of the interpretations}"""
    found = summarise(runs, test)
    sources = [pair.source for pair in test]
    references = [pair.targets for pair in test]
    before, wanted = sentiments(sources, predictor), majority_sentiments(test, predictor)
    draws = draw_samples(len(test))
    copied: dict[str, Any] = {"outputs": sources}
    copied_samples = mean_samples([copied], references, draws)
    copied_said = _said([copied], sources, before, wanted, predictor)
    result = {"copy": score_translations(sources, references).as_json() | _means(copied_said)}
    for weighting, some in by_weighting(runs).items():
        said = _said(some, sources, before, wanted, predictor)
        samples = mean_samples(some, references, draws)
        less = {}
        for metric in METRICS:
            value = found[weighting][metric]["mean"] - result["copy"][metric]["value"]
            interval = over_texts(samples[metric] - copied_samples[metric])
            less[metric] = {"value": value, "interval": interval}
        moved = said["agrees"] - copied_said["agrees"]  # (text,)
        interval = over_texts(moved[draws].mean(1))
        less["agrees"] = {"value": float(moved.mean()), "interval": interval}
        result[weighting] = found[weighting] | _means(said) | {"less_copy": less}
        if weighting == "minilm":
            result[weighting]["respaced_bleu"] = _respaced_bleu(some, references)
    n_flipped = sum(one != other for one, other in zip(before, wanted, strict=True))
    result["people"] = {"flipped": n_flipped / len(test), "n": len(test)} | people_scores(test)
    return result


def people_scores(test: Sequence[Pair]) -> dict[str, Any]:
    """How near people are to one another, and the tweet to them.

    tweets_kept: the share of the tweets that at least one person left as they are. one_of_them,
    tweet: scores of an interpretation, and of the tweet, against the other interpretations, the
    mean over which one it is.
    """
    kept = [pair.source in pair.targets for pair in test]
    scores: dict[str, list[list[float]]] = {"one_of_them": [], "tweet": []}
    for place in range(min(len(pair.targets) for pair in test)):
        others = [pair.targets[:place] + pair.targets[place + 1 :] for pair in test]
        if not all(others):
            continue
        outputs = {
            "one_of_them": [pair.targets[place] for pair in test],
            "tweet": [pair.source for pair in test],
        }
        for name, texts in outputs.items():
            found = score_translations(texts, others)
            scores[name].append([found.bleu.value, found.chrf.value])
    against = {
        name: dict(zip(METRICS, np.mean(values, axis=0).tolist(), strict=True))
        for name, values in scores.items()
        if values
    }
    return {"tweets_kept": float(np.mean(kept)), "against_others": against}


def _respaced_bleu(runs: Sequence[Run], references: Sequence[Sequence[str]]) -> float:
    """BLEU, the mean over seeds, with blanks where these tweets have them: word pieces come back as
    `isn ' t` and `what?`, the tweets say `isn't` and `what ?`.
    """
    values = []
    for run in runs:
        outputs = [re.sub(r" ' (?=\w)", "'", one) for one in run["outputs"]]
        outputs = [re.sub(r"(?<=\w)([?!.,])", r" \1", one) for one in outputs]
        values.append(score_translations(outputs, references).bleu.value)
    return float(np.mean(values))


def _said(
    runs: Sequence[Run],
    sources: Sequence[str],
    before: Sequence[str],
    wanted: Sequence[str],
    predictor: Any,
) -> dict[str, NDArray[np.float64]]:
    """Of each text the share of the seeds that changed it, turned its sentiment, and gave it the
    sentiment of most interpreters. {name: (text,)}
    """
    found: dict[str, list[list[bool]]] = {"changed": [], "flipped": [], "agrees": []}
    for run in runs:
        now = sentiments([one or " ." for one in run["outputs"]], predictor)
        found["changed"].append(_differ(run["outputs"], sources))
        found["flipped"].append(_differ(now, before))
        found["agrees"].append([not one for one in _differ(now, wanted)])
    return {name: np.mean(values, axis=0) for name, values in found.items()}


def _differ(some: Iterable[str], others: Iterable[str]) -> list[bool]:
    return [one != other for one, other in zip(some, others, strict=True)]


def _means(said: Mapping[str, NDArray[np.float64]]) -> dict[str, float]:
    return {name: float(values.mean()) for name, values in said.items()}


def sentiments(texts: Sequence[str], predictor: Any) -> list[str]:
    return [one.answers["sentiment"].label for one in predictor.predict(list(texts))]


def majority_sentiments(test: Sequence[Pair], predictor: Any) -> list[str]:
    """What most interpretations of each text are; of equals the first."""
    flat = [target for pair in test for target in pair.targets]
    labels = iter(sentiments(flat, predictor))
    return [Counter([next(labels) for _ in pair.targets]).most_common(1)[0][0] for pair in test]


def shown_outputs(runs: Sequence[Run], test: Sequence[Pair]) -> list[dict[str, str]]:
    """Some texts drawn by chance, with what the first seed of each weighting made of them."""
    places = sorted(random.Random(0).sample(range(len(test)), min(N_SHOWN, len(test))))
    lines = []
    for place in places:
        line = {"text": test[place].source, "people": test[place].targets[0]}
        for weighting, some in by_weighting(runs).items():
            line[weighting] = some[0]["outputs"][place]
        lines.append(line)
    return lines


if __name__ == "__main__":
    main()

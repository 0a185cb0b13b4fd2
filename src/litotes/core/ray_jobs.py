"""The same jobs on a Ray cluster: an existing one, or one made of this machine's cores.

Every job is a Ray task. What it writes must land in one place: on several nodes the folder of the
results has to be shared by all of them (NFS or the like) and named by its whole path, and litotes
installed on each. A worker or a node that dies loses nothing, since Ray gives its task to another
one, where the job finds its own traces in that folder. A worker does job after job, and what it has
loaded for the first serves all of them.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from litotes.core.errors import Stopped, UserError
from litotes.core.jobs import (
    GRACE_SECONDS,
    Job,
    JobProgress,
    Outcome,
    Work,
    attempt,
    error_sentence,
)
from litotes.core.progress import Watch, ignore_progress

N_RETRIES = 3
"""The retries of a job whose worker died; a cluster may lose whole nodes."""

SHARED_FOLDER = (
    "The jobs run on a cluster: --out must be a folder that all its nodes share, and litotes be"
    " installed on each."
)
"""For users whose jobs do not stay on this machine (`is_local`)."""

_LOCAL = "local"
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # every message: Ray prints them to stdout, where our results go
    "RAY_DEDUP_LOGS_SKIP_REGEX": "(?s).",
    "RAY_BACKEND_LOG_LEVEL": "fatal",  # what ends a job comes as an exception, too
}
# makes Ray listen on 127.0.0.1 only, on Linux as well
_ALONE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
# about the least Ray accepts: only descriptions and outcomes travel
_OBJECT_STORE_BYTES = 80_000_000


def run_on_ray(
    jobs: Mapping[str, Job],
    work: Work[Job],
    *,
    address: str | None,
    watch: Watch,
    n_workers: int | None = None,
    n_cpus_per_job: float = 1,
    n_gpus_per_job: float = 0,
    what: str = "runs",
) -> Iterator[Outcome]:
    """Does all jobs on the cluster at `address` and gives each outcome as it comes; see `run_jobs`.

    address: as Ray takes it ("auto", "10.0.0.1:6379", "ray://…"); None is $RAY_ADDRESS or else a
    cluster of this machine for as long as this lasts, which talks to no one outside. n_workers: how
    many jobs at a time; None: as many as there is room for.
    """
    needs = {name: n for name, n in (("CPU", n_cpus_per_job), ("GPU", n_gpus_per_job)) if n}
    watch(what, 0, len(jobs), "starting workers" if is_local(address) else SHARED_FOLDER)
    with cluster(address) as ray:
        n_places = count_places(ray.nodes(), needs, n_workers, is_local=is_local(address))
        progress = JobProgress(len(jobs), n_workers=n_places, watch=watch, what=what)
        task = ray.remote(
            num_cpus=n_cpus_per_job,
            num_gpus=n_gpus_per_job,
            max_calls=0,  # otherwise a worker with a GPU ends after one job, and loads all anew
            max_retries=N_RETRIES,
            retry_exceptions=[Stopped],
        )(_attempt)
        waiting = deque(jobs.items())
        pending: dict[Any, str] = {}
        try:
            while waiting or pending:
                while waiting and len(pending) < (n_workers or len(jobs)):
                    name, job = waiting.popleft()
                    pending[task.remote(name, work, job)] = name
                done, _ = ray.wait(list(pending), timeout=1.0)
                outcomes = [_outcome(ray, pending.pop(reference), reference) for reference in done]
                progress.report(outcomes)
                yield from outcomes
        except KeyboardInterrupt as error:
            raise progress.stopped() from error
        finally:
            _cancel(ray, list(pending))


def is_local(address: str | None) -> bool:
    """Tells whether the jobs will stay on this machine."""
    return _resolve_address(address) == _LOCAL


def _resolve_address(address: str | None) -> str:
    return address or os.environ.get("RAY_ADDRESS") or _LOCAL


@contextmanager
def cluster(address: str | None) -> Iterator[Any]:
    """The module `ray`, connected to the address; a connection the caller has made is kept."""
    address = _resolve_address(address)
    settings = _QUIET | _ALONE if address == _LOCAL else _QUIET
    for name, value in settings.items():
        os.environ.setdefault(name, value)  # read when Ray is imported
    try:
        import ray
    except ImportError as error:
        raise UserError('Jobs on Ray need Ray: pip install "litotes[ray]".') from error
    if ray.is_initialized():
        yield ray
        return
    own: dict[str, Any] = {}
    if address == _LOCAL:
        own = {"include_dashboard": False, "object_store_memory": _OBJECT_STORE_BYTES}
    try:
        _check_reachable(address)
        with _without_stderr():
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **own)
    except (OSError, ValueError) as error:
        advice = "Start one there (ray start --head), or give no address to use this machine."
        raise UserError(
            f"No Ray cluster answers at {address} ({error_sentence(error)}). {advice}"
        ) from error
    try:
        yield ray
    finally:
        ray.shutdown()


@contextmanager
def _without_stderr() -> Iterator[None]:
    """Ray's core prints the log level it was given, past Python, whatever that level is."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _check_reachable(address: str) -> None:
    """Tries to connect; Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


def count_places(
    nodes: Sequence[Mapping[str, Any]],
    needs: Mapping[str, float],
    n_workers: int | None = None,
    *,
    is_local: bool,
) -> int:
    """Counts the jobs that the nodes can do at the same time, n_workers of them at most.

    At least one on a cluster, which may grow; a single machine does not, and more would wait there
    for ever.
    """
    n_places = 0
    for node in nodes:
        if node["Alive"]:
            has = node["Resources"]
            n_places += int(min((has.get(name, 0) // n for name, n in needs.items()), default=1))
    wanted = " and ".join(f"{n:g} {name}" for name, n in needs.items())
    if is_local and not n_places:
        raise UserError(
            f"A job asks for {wanted}, which this machine does not have. Ask for less, or give the"
            " address of a cluster."
        )
    if is_local and (n_workers or 0) > n_places:
        raise UserError(
            f"{n_workers} workers need {wanted} each, and this machine has room for {n_places}: use"
            f" --workers {n_places}, or leave it out."
        )
    return n_workers or max(n_places, 1)


def _attempt(name: str, work: Work[Job], job: Job) -> Outcome:
    """Does a job in a Ray worker, which Ray gives as many threads as it has CPUs."""
    # the tokenizer would take all cores
    os.environ.setdefault("RAYON_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))
    return attempt(name, partial(work, job, ignore_progress))


def _outcome(ray: Any, name: str, reference: Any) -> Outcome:
    try:
        outcome: Outcome = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        # not of the job itself, whose errors are its outcome
        return Outcome(name, 0.0, error_sentence(error.cause), str(error))
    except ray.exceptions.RayError as error:
        advice = "perhaps out of memory; give it more CPUs, so that fewer run beside it"
        ended = f"{name} ended every worker it was given to ({type(error).__name__})"
        return Outcome(name, 0.0, f"{ended}: {advice}.")
    return outcome


def _cancel(ray: Any, references: list[Any]) -> None:
    """Asks running jobs to stop, as Ctrl-C does, and kills those that do not."""
    try:
        for reference in references:
            ray.cancel(reference)
        if references:
            _, references = ray.wait(references, num_returns=len(references), timeout=GRACE_SECONDS)
    finally:  # also at a second Ctrl-C
        for reference in references:
            ray.cancel(reference, force=True)

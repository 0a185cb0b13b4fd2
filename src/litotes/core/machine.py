"""This processor's abilities, what ONNX Runtime therefore multiplies with, and how many cores this
process may use.

ONNX Runtime chooses for itself, by the same features (MLAS, core/mlas/lib/platform.cpp in 1.31), so
nothing here changes an answer: it explains to the user why a file is fast or slow. Our int8 files
multiply unsigned activations by signed weights. The best available wins:

    int8      x86       AMX int8, AVX-512 VNNI, AVX-512, AVX-VNNI, AVX2, SSE
              aarch64   i8mm (Linux), dot product, NEON
    float32   x86       AVX-512, AVX2, SSE
              aarch64   SME, NEON

bf16 is never used: on aarch64 ONNX Runtime would round float32 products to it if asked
(`mlas.enable_gemm_fastmath_arm64_bfloat16`, off by default), and eight bits of a number do not keep
probabilities within 1e-4 of torch.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litotes.core.errors import UserError, has_extra
from litotes.core.version import __version__

if TYPE_CHECKING:
    import torch

_FACTS = tomllib.loads(Path(__file__).with_name("processors.toml").read_text("utf-8"))
_SYSCTL_INTEL = ("machdep.cpu.features", "machdep.cpu.leaf7_features")
_SYSCTL = "/usr/sbin/sysctl"


@dataclass(frozen=True)
class Processor:
    """name: the vendor's. kind: x86, aarch64 or unknown. features: those that every core has."""

    name: str
    kind: str
    features: frozenset[str]

    def describe(self, precision: str) -> str:
        """Says in one sentence what products of that precision are computed with."""
        # weights stored in 16 bits are computed in float32
        choices = _FACTS["int8" if precision == "int8" else "float32"].get(self.kind)
        if choices is None:
            return f"{precision} with what ONNX Runtime finds: this processor is unknown."
        best = next((choice for choice in choices if choice in self.features), list(choices)[-1])
        without = " without VNNI" if (precision, best) == ("int8", "AVX-512") else ""
        has_unused = precision == "float32" and "bf16" in self.features
        unused = "; bf16 is there but left alone, for it is not exact enough" if has_unused else ""
        return f"{precision} with {best}{without}: {choices[best]}{unused}."


def this_processor() -> Processor:
    """Identifies this machine's processor; what cannot be found out is unknown."""
    try:
        if sys.platform == "linux":
            return from_cpuinfo(Path("/proc/cpuinfo").read_text("utf-8", errors="replace"))
        if sys.platform == "darwin":
            done = subprocess.run(  # noqa: S603  (words of our own)
                [_SYSCTL, "machdep.cpu", "hw.optional"],
                capture_output=True,
                text=True,
                timeout=5,
                check=False,
            )
            return from_sysctl(done.stdout)
    except (OSError, subprocess.SubprocessError):
        pass  # no /proc in this container, no sysctl in this sandbox
    return Processor(platform.processor() or "unknown", "unknown", frozenset())


def from_cpuinfo(text: str) -> Processor:
    """From what Linux writes: a block of `name : value` lines for every core, x86 with `flags`,
    aarch64 with `Features`.
    """
    cores = [dict(_pairs(block)) for block in re.split(r"\n\s*\n", text)]
    name = cores[0].get("model name") or _arm_name(cores[0])
    for kind, key in (("x86", "flags"), ("aarch64", "Features")):
        words = [set(core[key].split()) for core in cores if key in core]
        if words:
            return Processor(name, kind, _features(kind, set.intersection(*words)))
    return Processor(name, "unknown", frozenset())


def from_sysctl(text: str) -> Processor:
    """From what macOS writes, `name: value`: Apple's own processors have `hw.optional.arm.FEAT_…:
    1`, Intel's a list of features.
    """
    values = dict(_pairs(text))
    name = values.get("machdep.cpu.brand_string") or "unknown"
    has = {key for key, value in values.items() if value == "1"}
    arm = {word for key, word in _FACTS["sysctl"].items() if f"hw.optional.arm.{key}" in has}
    if arm:
        # ONNX Runtime uses i8mm on Linux only
        return Processor(name, "aarch64", _features("aarch64", arm) - {"i8mm"})
    intel = " ".join(values.get(key, "") for key in _SYSCTL_INTEL).lower()
    if intel.strip():
        words = intel.replace("avx512vnni", "avx512_vnni").split()
        return Processor(name, "x86", _features("x86", words))
    return Processor(name, "unknown", frozenset())


def n_cores(*, root: Path = Path("/")) -> int:
    """Counts the cores this process may keep busy: those of its affinity mask, or fewer where a
    control group allows fewer (docker --cpus).

    A quota of a core and a half is worth two threads. root: where /proc and /sys are found.
    """
    n = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):  # Linux
        n = len(os.sched_getaffinity(0))
    for quota in _quotas(root):
        n = min(n, ceil(quota))
    return max(n, 1)


def _quotas(root: Path) -> Iterator[float]:
    """In cores, of this process's group and of all above it: version 2 of control groups
    (`cpu.max`) and version 1.
    """
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        is_version_1 = controllers != ""
        if is_version_1 and "cpu" not in controllers.split(","):
            continue
        for folder in _upwards(root / "sys/fs/cgroup" / controllers, path):
            # microseconds of processor time, and the period they are allowed in
            limit = _read(folder / "cpu.max").split()
            if is_version_1:
                limit = [_read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us")]
            if all(map(str.isdecimal, limit)) and len(limit) == 2:  # "max" and -1: no limit
                yield int(limit[0]) / max(int(limit[1]), 1)


def _upwards(base: Path, path: str) -> Iterator[Path]:
    """A group's folder and those above it.

    Inside a container the path is often one of the host's, of which only `base` is there.
    """
    parts = [part for part in path.split("/") if part not in ("", "..")]
    for depth in range(len(parts), -1, -1):
        yield base.joinpath(*parts[:depth])


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8", errors="replace").strip()
    except OSError:
        return ""


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon:
            yield key.strip(), value.strip()


def _features(kind: str, words: Iterable[str]) -> frozenset[str]:
    known, found = _FACTS["features"][kind], set(words)
    return frozenset(feature for feature, needed in known.items() if found >= {*needed.split()})


def _arm_name(core: Mapping[str, str]) -> str:
    """Linux names Arm processors by numbers only."""
    if "CPU part" not in core:
        return "unknown"
    return f"maker {core.get('CPU implementer', 'unknown')}, part {core['CPU part']}"


_GPUS = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvmap", "/dev/kfd", "/dev/dxg")
"""Device files on Linux of what torch may call cuda: NVIDIA's cards and small boards, AMD's cards,
and the GPU inside the Windows Subsystem for Linux.
"""


def choose_device(name: str | None) -> torch.device:
    """The named device, cpu or cuda[:n]; without a name CUDA where there is one, else the CPU."""
    import torch

    if name is None:
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cpu":
        # Setting the number of threads fixes it: otherwise MKL may take fewer, and sums are added
        # up in another order.
        torch.set_num_threads(torch.get_num_threads())
    elif not re.fullmatch(r"cuda(:\d+)?", name):
        raise UserError(f"There is no device {name!r}. Use cpu or cuda.")
    elif not torch.cuda.is_available():
        raise UserError(
            "This machine has no CUDA device (or torch was installed without it). Use --device cpu."
        )
    elif int(name.partition(":")[2] or 0) >= torch.cuda.device_count():
        raise UserError(
            f"There is no device {name!r}: this machine has {torch.cuda.device_count()} CUDA"
            " devices, counted from 0."
        )
    return torch.device(name)


def is_cpu(name: str | None) -> bool:
    """Tells whether `choose_device` would take the CPU; torch, which takes seconds to import, is
    asked only where there might be another.
    """
    if name is not None:
        return name == "cpu"
    if sys.platform == "darwin":
        return True
    if sys.platform == "linux" and not any(Path(file).exists() for file in _GPUS):
        return True
    if not has_extra("train"):  # nothing here could use another
        return True
    return choose_device(None).type == "cpu"


STREAM_THREADS = "litotes-stream"
"""The prefix in names of threads that compute texts as they come."""


def sleep_while_waiting() -> None:
    """Lets OpenMP's threads sleep while they wait, unless the user has chosen otherwise.

    By default they spin. Where another process needs a core too, a spinning thread keeps the very
    thread it waits for from running: two training threads on two busy cores took 5 to 9 times as
    long as with this. What is computed does not change. Counts only before torch is imported;
    processes started later inherit it.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def trim_malloc() -> None:
    """Makes glibc return the memory that was freed.

    Maps of all sizes come and go, and glibc keeps the holes they leave: after thousands of texts
    these are half of what a process holds. Takes a few milliseconds; without glibc there is nothing
    to do.
    """
    if sys.platform == "linux" and hasattr(ctypes.CDLL(None), "malloc_trim"):
        ctypes.CDLL(None).malloc_trim(0)


LIBRARIES = (
    "torch",
    "onnxruntime",
    "transformers",
    "tokenizers",
    "numpy",
    "entmax",
    "torchjd",
    "ctranslate2",
    "openvino",
)


def machine() -> dict[str, Any]:
    """Lists what does not change while a machine works, but nothing unknown or not installed."""
    import torch

    processor = this_processor()
    found = {
        "processor": platform.machine(),
        "model": processor.name,
        "features": ", ".join(sorted(processor.features)) or None,
        "n_cores": n_cores(),
        "n_threads": torch.get_num_threads(),
        "memory_gb": _memory_gb(),
        "python": platform.python_version(),
        "litotes": __version__,
        **{library: library_version(library) for library in LIBRARIES},
    }
    return {name: value for name, value in found.items() if value is not None}


def machine_now() -> dict[str, Any]:
    """The same and how busy it is: the mean number of processes that wanted to run in the last 1, 5
    and 15 minutes.
    """
    if not hasattr(os, "getloadavg"):  # Windows
        return machine()
    return machine() | {"load_average": [round(load, 2) for load in os.getloadavg()]}


def _memory_gb() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):  # Windows; a system that does not say
        return None


def library_version(library: str) -> str | None:
    """None: it is not installed."""
    # takes longer to import than all the rest, which the first label need not wait for
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(library)
    except PackageNotFoundError:
        return None

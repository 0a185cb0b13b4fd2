"""What a processor can do, from texts as Linux and macOS write them; how many cores a process may
use, from made-up control groups.
"""

from __future__ import annotations

import os
import re
import sys
import tomllib
from pathlib import Path

import pytest

from litotes.core import machine
from litotes.core.machine import Processor, from_cpuinfo, from_sysctl, n_cores, this_processor

TABLES = tomllib.loads(Path(__file__).with_name("processors.toml").read_text("utf-8"))
AVX2 = "fpu sse2 avx fma avx2"
AVX512 = f"{AVX2} avx512f avx512dq avx512bw avx512vl"
SAPPHIRE = f"{AVX512} avx512_vnni avx_vnni avx512_bf16 amx_bf16 amx_tile amx_int8"
N1 = "fp asimd evtstrm aes asimdhp asimddp"
V1 = f"{N1} sve bf16 i8mm"


def x86(*flags: str) -> str:
    return (
        "\n\n".join(
            f"processor\t: {n}\nmodel name\t: Some Xeon @ 2.50GHz\nflags\t\t: {words}"
            for n, words in enumerate(flags)
        )
        + "\n"
    )


def arm(*features: str) -> str:
    lines = "processor\t: {}\nFeatures\t: {}\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c"
    return "\n\n".join(lines.format(n, words) for n, words in enumerate(features)) + "\n"


@pytest.mark.parametrize(("kind", "cores", "int8", "float32"), TABLES["products"])
def test_what_products_are_computed_with(
    kind: str, cores: list[str], int8: str, float32: str
) -> None:
    known = {"AVX2": AVX2, "AVX512": AVX512, "SAPPHIRE": SAPPHIRE, "N1": N1, "V1": V1}
    words = [" ".join(known.get(word, word) for word in core.split()) for core in cores]
    text = {"x86": x86, "arm": arm}.get(kind, "".join)(*words)
    found = from_cpuinfo(text)
    for precision, pattern in (("int8", int8), ("float32", float32)):
        sentence = found.describe(precision)
        assert re.match(pattern, sentence), sentence
        assert sentence.endswith(".")
        assert sentence.count(".") == 1
    # stored in 16 bits, computed in 32
    in_16 = found.describe("int16").replace("int16", "float32").rstrip(".")
    assert found.describe("float32").startswith(in_16)


def test_names_and_features() -> None:
    assert from_cpuinfo(x86(AVX512)) == Processor(
        "Some Xeon @ 2.50GHz", "x86", frozenset({"AVX2", "AVX-512"})
    )
    assert from_cpuinfo(arm(V1)) == Processor(
        "maker 0x41, part 0xd0c",
        "aarch64",
        frozenset({"NEON", "dot product", "i8mm", "bf16", "SVE"}),
    )
    assert from_cpuinfo("nonsense") == Processor("unknown", "unknown", frozenset())


def test_apple() -> None:
    m2 = (
        "machdep.cpu.brand_string: Apple M2\nhw.optional.arm.AdvSIMD:"
        " 1\nhw.optional.arm.FEAT_DotProd: 1\nhw.optional.arm.FEAT_I8MM: 1\n"
    )
    found = from_sysctl(m2 + "hw.optional.arm.FEAT_BF16: 1\nhw.optional.arm.FEAT_SME: 0\n")
    assert found == Processor("Apple M2", "aarch64", frozenset({"NEON", "dot product", "bf16"}))
    assert found.describe("int8").startswith("int8 with dot product")
    intel = (
        "machdep.cpu.brand_string: Intel(R) Core(TM) i7\nmachdep.cpu.features: FPU FMA"
        " AVX1.0\nmachdep.cpu.leaf7_features: AVX2 AVX512F"
    )
    assert from_sysctl(intel) == Processor("Intel(R) Core(TM) i7", "x86", frozenset({"AVX2"}))
    assert from_sysctl("") == Processor("unknown", "unknown", frozenset())


def test_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    assert this_processor().name
    monkeypatch.setattr(sys, "platform", "win32")
    assert this_processor().kind == "unknown"
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(machine, "_SYSCTL", "/nowhere/sysctl")
    assert this_processor().kind == "unknown"


@pytest.mark.skipif(sys.platform != "linux", reason="as Linux says it")
def test_memory_is_what_linux_says() -> None:
    total = int(re.findall(r"MemTotal:\s+(\d+) kB", Path("/proc/meminfo").read_text())[0])
    found = machine.machine()
    assert found["memory_gb"] == pytest.approx(total / 2**20, abs=0.06)
    assert found["n_cores"] == n_cores()
    assert "load_average" in machine.machine_now()


def groups(root: Path, membership: str, **files: str) -> Path:
    """A made-up system: what /proc/self/cgroup says, and files under /sys/fs/cgroup; __ in a name
    is a slash.
    """
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(membership)
    for name, content in files.items():
        file = root / "sys/fs/cgroup" / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return root


@pytest.mark.parametrize(("membership", "files", "expected"), TABLES["groups"])
def test_cores_of_control_groups(
    membership: str,
    files: dict[str, str],
    expected: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert n_cores(root=groups(tmp_path, membership, **files)) == expected


def test_cores_without_masks_or_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert n_cores(root=tmp_path) == 6
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert n_cores(root=tmp_path) == 1


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity masks here")
def test_the_affinity_mask_counts(tmp_path: Path) -> None:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert n_cores(root=tmp_path) == 1
    finally:
        os.sched_setaffinity(0, before)
    assert n_cores(root=tmp_path) == len(before)

"""Imports point down, there are no cycles, and what the project promises never to do is not done
anywhere.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "litotes"

LEVELS = (
    ("core",),
    ("data",),
    ("encoder",),
    ("kernels",),
    ("model",),
    ("explanation",),
    ("prediction",),
    ("evaluation",),
    ("training",),
    ("exporting", "pruning"),
    ("study",),
    ("service", "sklearn"),
    ("cli",),
    ("__init__", "__main__"),
)
"""From the bottom up.

A package imports packages of lower levels only: nothing of its own level, nothing above.
"""
LEVEL = {package: number for number, packages in enumerate(LEVELS) for package in packages}

FILES = sorted(SOURCE.rglob("*.py"))


ASKED_FOR = ast.Import | ast.ImportFrom | ast.Call | ast.FunctionDef | ast.AsyncFunctionDef


@cache
def nodes_of(file: Path) -> tuple[ast.AST, ...]:
    """Those of the kinds that any test asks for."""
    nodes = ast.walk(ast.parse(file.read_text("utf-8")))
    return tuple(node for node in nodes if isinstance(node, ASKED_FOR))


def module_of(file: Path) -> str:
    parts = file.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(file) for file in FILES}


def package_of(module: str) -> str:
    return module.split(".")[1] if "." in module else "__init__"


def imports_of(file: Path) -> Iterator[str]:
    """All litotes modules a file imports, wherever the import stands."""
    for node in nodes_of(file):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif (
            isinstance(node, ast.ImportFrom)
            and node.module
            and node.module.split(".")[0] == "litotes"
        ):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in MODULES else node.module


def test_every_package_has_a_level() -> None:
    assert {package_of(module) for module in MODULES} == set(LEVEL)


def test_no_module_lies_loose() -> None:
    assert {file.name for file in SOURCE.glob("*.py")} == {"__init__.py", "__main__.py"}


def test_imports_point_down() -> None:
    """From no file to its own level, nor to one above."""
    wrong = {}
    for file in FILES:
        here = package_of(module_of(file))
        others = {other for other in imports_of(file) if package_of(other) != here}
        above = {other for other in others if LEVEL[package_of(other)] >= LEVEL[here]}
        if here == "encoder":  # until the operations are handed in
            above = {other for other in above if package_of(other) != "kernels"}
        if above:
            wrong[module_of(file)] = above
    assert not wrong


def test_no_cycles() -> None:
    graph = {module_of(file): set(imports_of(file)) - {module_of(file)} for file in FILES}
    tuple(TopologicalSorter(graph).static_order())  # raises CycleError with the cycle's modules
    assert len(graph) == len(MODULES)


@pytest.mark.parametrize(
    ("library", "users"),
    [("transformers", {"litotes.study.speed"}), ("ray", {"litotes.core.ray_jobs"})],
)
def test_a_library_is_imported_in_one_place_alone(library: str, users: set[str]) -> None:
    """Transformers, to measure it beside ours where it is installed; Ray, where jobs are given to
    it.
    """
    assert {module_of(file) for file in FILES if library in outside_imports(file)} <= users


FORBIDDEN_MODULES = {"pickle", "joblib", "dill", "cloudpickle", "shelve", "marshal"}
FORBIDDEN_CALLS = {"eval", "exec", "torch.load", "torch.save", "os.system", "np.load"}


def test_nothing_unpickles_or_runs_strings() -> None:
    wrong = []
    for file in FILES:
        wrong += [f"{file} imports {name}" for name in outside_imports(file) & FORBIDDEN_MODULES]
        for node in nodes_of(file):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if called in FORBIDDEN_CALLS:
                    wrong.append(f"{file}:{node.lineno} calls {called}")
    assert not wrong


def test_a_file_is_read_in_one_sitting() -> None:
    wrong = []
    for file in FILES:
        lines = file.read_text("utf-8").splitlines()
        wrong += [
            f"{file}:{number} is {len(line)} columns wide"
            for number, line in enumerate(lines, start=1)
            if len(line) > 100
        ]
        wrong += [f"{file}: {name} is {length} lines long" for name, length in long_functions(file)]
    assert not wrong


def long_functions(file: Path) -> Iterator[tuple[str, int]]:
    for node in nodes_of(file):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or 0) - node.lineno + 1
            if length > 60:
                yield node.name, length


def outside_imports(file: Path) -> set[str]:
    found = set()
    for node in nodes_of(file):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found

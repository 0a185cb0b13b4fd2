"""Every Python snippet of the documentation is executed, every command line it shows is one the
program understands.

A snippet marked `py` uses a library that litotes does not need: it is executed where that library
is installed, else only compiled.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from importlib.util import find_spec
from inspect import signature
from pathlib import Path

import pytest
from snippet_runner import OUTPUT, fork, run_command, run_program
from test_architecture import LEVEL, LEVELS, SOURCE

import litotes
from litotes.cli.main import main, parse
from litotes.data.tables import read_rows
from litotes.study.plan import read_study

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(
    r"^(?:\$ )?(?:torchrun .* -m |\.venv/bin/)?(litotes (?:.*\\\n)*.*)$", re.MULTILINE
)


def blocks(page: Path, *languages: str) -> list[str]:
    return [
        code for language, code in FENCE.findall(page.read_text("utf-8")) if language in languages
    ]


TRAINING = ROOT / "docs" / "how-to" / "training.md"
"""The page that trains runs/mine, which other pages use."""
EXPORT = ROOT / "docs" / "how-to" / "export.md"
"""The page that asks a model about hundreds of texts, in three ways."""
MAX_PIECES = 8
"""How much of a text is read by pages that train, on texts nine times as long."""


def run_snippets(page: Path, folder: Path) -> None:
    """Runs all snippets of a page as one program, in a fork that has torch already."""
    (folder / "recipes").symlink_to(ROOT / "recipes")
    program = "\n".join(blocks(page, "python"))
    trains = re.search(r"\b(train|execute|distill)\(", program)
    code = fork(run_program, folder, program, MAX_PIECES if trains else None)
    assert code == 0, (folder / OUTPUT).read_text("utf-8")


@pytest.fixture(scope="session")
def trained_by_the_docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder runs/mine that the page about training makes."""
    folder = tmp_path_factory.mktemp("training")
    run_snippets(TRAINING, folder)
    return folder / "runs" / "mine"


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.name
)
def test_snippets_run(
    page: Path, trained_by_the_docs: Path, trained_folder: Path, tmp_path: Path
) -> None:
    if page == TRAINING:
        assert (trained_by_the_docs / "litotes.json").is_file()
        return
    shown = "".join(blocks(page, "python"))
    if "runs/mine" in shown and "train(" not in shown:
        model = trained_folder if page == EXPORT else trained_by_the_docs
        shutil.copytree(model, tmp_path / "runs" / "mine")
    run_snippets(page, tmp_path)


FOREIGN = {
    f"{page.name}-{number}": code
    for page in PAGES
    for number, code in enumerate(blocks(page, "py"))
    # tests/prediction/test_tables_on_ray.py runs that one, on a cluster it has anyway
    if "import ray" not in code
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FOREIGN)
def test_snippets_of_other_libraries_run(name: str, trained_folder: Path, tmp_path: Path) -> None:
    """With a model in runs/mine and a table, comments.parquet."""
    for module in re.findall(r"^(?:import|from) (\w+)", FOREIGN[name], re.MULTILINE):
        pytest.importorskip(module)
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    shutil.copytree(trained_folder, tmp_path / "runs" / "mine")
    pq.write_table(
        pa.table({"id": range(40), "text": [f"the tea {n}" for n in range(40)]}),
        tmp_path / "comments.parquet",
    )
    code = fork(run_program, tmp_path, FOREIGN[name])
    assert code == 0, (tmp_path / OUTPUT).read_text("utf-8")
    if "comments.parquet" in FOREIGN[name]:
        (written,) = tmp_path.glob("*-answers")
        parts = [pq.read_table(file).to_pylist() for file in sorted(written.glob("*.parquet"))]
        rows = [row for part in parts for row in part]
        assert sorted(row["id"] for row in rows) == list(range(40))
        assert {row["sarcasm"] for row in rows} <= {"literal", "sarcastic"}


OWN_TABLE = ROOT / "docs" / "tutorials" / "your-own-table.md"


def shown_commands(page: Path) -> list[str]:
    return [command for code in blocks(page, "") for command in COMMAND.findall(code)]


@pytest.mark.slow
def test_the_tutorial_ends_in_a_model_a_matrix_and_answers(
    tiny_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its commands are executed with a tiny encoder and one epoch, which is all that is changed."""
    run_snippets(OWN_TABLE, tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["new", "reviews.csv"]) == 0
    printed = capsys.readouterr().out.strip()
    (shown,) = blocks(OWN_TABLE, "text")
    assert printed == shown.strip()
    next_commands = [line.strip() for line in printed.splitlines() if "  litotes " in line]
    assert len(next_commands) == 5
    assert set(next_commands) <= set(shown_commands(OWN_TABLE))
    quick = f"model.encoder={tiny_folder} model.max_pieces=32 training.epochs=1"
    changes = [
        word for change in f"{quick} training.freeze_below=1".split() for word in ("--set", change)
    ]
    for command in shown_commands(OWN_TABLE):
        _, name, *words = shlex.split(command)
        if name not in ("new", "serve"):
            added = changes if name in ("train", "matrix") else []
            assert fork(run_command, tmp_path, [name, *words, *added]) == 0, command
    scores = json.loads((tmp_path / "runs" / "reviews" / "scores.json").read_text())
    assert {row["cell"] for row in scores} == {"all", "Australia", "Britain", "India"}
    matrix = json.loads((tmp_path / "runs" / "reviews-matrix" / "matrix.json").read_text())
    assert matrix["matrices"][0]["axis"] == "region"
    answers = read_rows(tmp_path / "reviews-answers.csv", needs=("id", "review", "region"))
    assert [row.values["id"] for row in answers] == [str(number) for number in range(780)]


def test_studies_shown_are_studies(tmp_path: Path) -> None:
    (shown,) = blocks(ROOT / "docs" / "how-to" / "study.md", "toml")
    (published,) = blocks(ROOT / "docs" / "how-to" / "study.md", "json")
    (tmp_path / "shown.toml").write_text(shown)
    (tmp_path / "paper.json").write_text(published)
    for file in (tmp_path / "shown.toml", *sorted((ROOT / "recipes").glob("study_*.toml"))):
        assert read_study(file).experiments


def commands() -> list[str]:
    shown = [
        command
        for page in PAGES
        for code in blocks(page, "", "console", "sh")
        for command in COMMAND.findall(code)
    ]
    recipes = [
        line[2:].strip()
        for file in sorted((ROOT / "recipes").glob("*.toml"))
        for line in file.read_text().splitlines()[:1]
    ]
    return [*shown, *recipes]


LINK = re.compile(r"\]\((?!https?://|mailto:)([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)
LINKED = [*PAGES, ROOT / "reproduction" / "README.md"]


def links_of(page: Path) -> list[str]:
    found: list[str] = LINK.findall(CODE.sub("", page.read_text("utf-8")))
    return found


def anchors(page: Path) -> set[str]:
    """The headings of a page, spelled as links spell them."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", LINKED, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere_and_files_that_are_named_exist(page: Path) -> None:
    for link in links_of(page):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), link
    text = page.read_text("utf-8")
    for folder, pattern in ((ROOT, NAMED), (SOURCE, INSIDE)):
        for name in pattern.findall(text):
            assert (folder / name).exists() or name.endswith(INVENTED), name
    for module in re.findall(r"-m ((?:reproduction|bench)[\w.]*\w)", text):
        assert find_spec(module), module


DOCS = ROOT / "docs"


def test_every_page_is_in_the_index() -> None:
    """Chapters of the tour are in its own index."""
    for index in (DOCS / "README.md", DOCS / "tour" / "README.md"):
        linked = {(index.parent / link.split("#")[0]).resolve() for link in links_of(index)}
        pages = {
            page
            for page in index.parent.rglob("*.md")
            if page != index and (index.parent.name == "tour" or page.parent.name != "tour")
        }
        assert not pages - linked, index


def test_every_file_is_named_in_one_way_and_shown_or_read() -> None:
    """Shown or linked by a page, or read by a test or a script."""
    readers = [*LINKED, *(ROOT / "tests").rglob("*.py"), *(ROOT / "reproduction").rglob("*.py")]
    named = "".join(file.read_text("utf-8") for file in readers)
    for file in DOCS.rglob("*.*"):
        assert re.fullmatch(r"README|[a-z0-9-]+", file.stem), file
        assert file.name in named, file


NAMED = re.compile(
    r"(?<![\w./-])((?:bench|deploy|recipes|reproduction|src/litotes|tests)/[\w./-]*\w)"
)
INSIDE = re.compile(rf"(?<![\w./-])((?:{'|'.join(LEVEL)})/[\w./]*\.(?:py|toml))")
INVENTED = ("mine.py", "mine/course.py", "tempered.py", "rivals", "edition-6.json")
"""Files of examples, and of runs."""


def test_the_reference_lists_every_public_name_as_it_is_called() -> None:
    (table,) = re.findall(
        r"^\| name \|.*?\n\n", (DOCS / "reference" / "api.md").read_text("utf-8"), re.M | re.S
    )
    calls = re.findall(
        r"`(\w+)(?:\(([^)]*)\))?`", "".join(re.findall(r"^\|([^|]*)\|", table, re.M))
    )
    assert {name for name, _ in calls} == set(litotes.__all__) - {"__version__"}
    for name, arguments in calls:
        if arguments:
            given = [part.split("=")[0].strip() for part in arguments.split(",")]
            assert set(given) <= set(signature(getattr(litotes, name)).parameters), name


def test_the_architecture_lists_the_packages_from_the_bottom_up() -> None:
    page = (DOCS / "architecture.md").read_text("utf-8")
    (table,) = re.findall(r"^\| package \|.*?\n\n", page, re.MULTILINE | re.DOTALL)
    rows = [re.findall(r"`(\w+)`", row.split("|")[1]) for row in table.splitlines()[2:] if row]
    assert [set(row) for row in rows] == [set(level) for level in LEVELS[:-1]]
    for table_name, file in re.findall(r"`([A-Z_]+)` in `(?!tests)([\w/]+\.py)`", page):
        code = (SOURCE / file).read_text("utf-8")
        assert re.search(rf"^{table_name}\b", code, re.MULTILINE), f"{table_name} in {file}"


@pytest.mark.parametrize("command", commands())
def test_commands_are_understood(command: str) -> None:
    _, *arguments = shlex.split(command.replace("\\\n", " "), comments=True)
    if arguments != ["--help"]:
        assert parse(arguments).command


def test_the_repository_speaks_of_the_project_alone() -> None:
    """No machine's paths or hosts, in code or documents."""
    strange = re.compile(
        r"/work/|/root/|/home/\w+|/tmp/venv|https?://(?!www\.w3\.org)\S*(?:registry|mirror|proxy)"
    )
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout
    endings = (".py", ".md", ".toml", ".html", ".txt", ".yaml", ".service", "Containerfile")
    for name in listed.split():
        if name.endswith(endings) and name != "tests/test_docs.py":
            found = strange.search((ROOT / name).read_text("utf-8"))
            assert not found, f"{name}: {found}"

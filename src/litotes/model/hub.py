"""Model folders on the Hugging Face Hub: pushed with their card, and pulled.

    folder  →  checked against its manifest  →  one commit with the files that may travel
    commit  →  manifest  →  the files it lists, from that commit  →  checked  →  folder

Nothing but weights in safetensors, the table of an exit, JSON and text travels: no pickle, no code,
no exported file (`litotes export` makes it again). What decides an answer must be what the manifest
states, on both ends; what people edit, the card say, may have been edited since.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from litotes.core.errors import UserError, reason_of, require_extra
from litotes.core.json_text import read_json_table
from litotes.core.progress import Watch, ignore_progress
from litotes.core.registry import is_plain_name
from litotes.core.storage import (
    MANIFEST,
    free_folder,
    json_bytes,
    make_folder,
    sha256_of,
    staging_folder,
    write_bytes,
)
from litotes.core.text import one_line
from litotes.model.exits import TABLE
from litotes.model.folder import (
    DESCRIPTION,
    HASHED,
    Manifest,
    ModelFolder,
    changed_file,
    open_model,
    own_files,
    read_manifest,
)

TRAVELS = (".safetensors", ".json", ".jsonl", ".md", ".txt")
"""How the names of files end that are pushed and pulled; of other files only the table travels."""
DECIDING = (DESCRIPTION, *HASHED, TABLE)
_STAYS = ("export.json",)
"""The note of an exported file, which stays at home with it."""
_NAME = re.compile(r"([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@([\w./-]+))?")
_FILE = re.compile(r"[A-Za-z0-9][\w.-]*")
_ADVICE = "Check the name and the network; where you need to be known, log in with `hf auth login`."


@dataclass(frozen=True)
class OnHub:
    """A model on the Hub, and the folder it came from or went to.

    revision: the commit. files: what travelled. left_out: what stayed at home. notes: what the user
    should know.
    """

    name: str
    revision: str
    folder: Path
    files: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        folder = str(self.folder)
        return one_line(self, name=self.name, revision=self.revision, folder=folder)

    def as_json(self) -> dict[str, Any]:
        content = {**asdict(self), "folder": str(self.folder)}
        del content["notes"]
        return content


def push(
    model: str | Path | ModelFolder,
    name: str,
    *,
    private: bool = True,
    message: str | None = None,
    endpoint: str | None = None,
) -> OnHub:
    """Pushes a model folder as one commit. name: OWNER/NAME, which is made if it is not there.

    private: of one that is made. endpoint: of a Hub of one's own.
    """
    repository, revision = split_name(name)
    if revision is not None:
        raise UserError(f"A model is pushed to a new commit: write {repository}, without @.")
    folder = open_model(model)
    contents: dict[str, bytes] = {}
    left_out: list[str] = []
    for part in (folder, *folder.parts):
        within, own = part.path.relative_to(folder.path), own_files(part.path)
        travelling = {file.name: file.read_bytes() for file in own if _may_travel(file.name)}
        manifest = Manifest({}).with_files(travelling)
        for name in _deciding(part):
            if name not in travelling:
                raise changed_file(part.path / name)
            part.manifest.check(part.path / name, manifest.files[name])
        left_out += [(within / one.name).as_posix() for one in own if one.name not in travelling]
        travelling[MANIFEST] = json_bytes(manifest.as_json())
        contents |= {(within / name).as_posix(): one for name, one in travelling.items()}
    with _hub_errors(f"{folder} could not be pushed to {repository}"):
        from huggingface_hub import CommitOperationAdd, HfApi

        api = HfApi(endpoint=endpoint or _own_hub())
        api.create_repo(repository, private=private, exist_ok=True)
        operations = [CommitOperationAdd(path, content) for path, content in contents.items()]
        message = message or "Push a litotes model folder"
        commit = api.create_commit(repository, operations, commit_message=message)
    return OnHub(repository, commit.oid, folder.path, tuple(contents), tuple(left_out))


def pull(
    name: str,
    out: str | Path,
    *,
    endpoint: str | None = None,
    watch: Watch = ignore_progress,
) -> OnHub:
    """Pulls a model folder into a new one. name: OWNER/NAME, or OWNER/NAME@REVISION.

    All files are those of one commit, and those that decide answers are the ones that the manifest
    states; what fails leaves nothing behind.
    """
    repository, revision = split_name(name)
    folder = Path(out)
    with free_folder(folder):
        make_folder(folder)
        with staging_folder(folder.parent) as staged:
            found = _fetch(repository, revision, staged, endpoint or _own_hub(), watch)
            for path in sorted(found.files, key=lambda path: Path(path).name == DESCRIPTION):
                write_bytes(folder / path, (staged / path).read_bytes())
        pulled = open_model(folder)
        for part in (pulled, *pulled.parts):
            for name in _deciding(part):
                if name not in part.manifest.files:
                    place = (part.path / name).relative_to(folder)
                    raise UserError(
                        f"{repository} lists no {place.as_posix()}, without which it gives no"
                        " answer: nothing was pulled. Ask its owner to push it again."
                    )
    return replace(found, folder=folder)


def _own_hub() -> str | None:
    """The address of a Hub of one's own, by the variable that the Hub's library knows."""
    return os.environ.get("HF_ENDPOINT")


def split_name(name: str) -> tuple[str, str | None]:
    """OWNER/NAME and the revision, if it has one."""
    found = _NAME.fullmatch(name)
    if found is None:
        raise UserError(
            f"{name!r:.80} is no name on the Hugging Face Hub: write OWNER/NAME, or to pull"
            " OWNER/NAME@REVISION."
        )
    return found[1], found[2]


def _deciding(folder: ModelFolder) -> tuple[str, ...]:
    """The files without which the folder gives no answer."""
    if folder.parts:
        return (DESCRIPTION,)
    has_table = folder.exits is not None and folder.exits.has_table
    return DECIDING if has_table else DECIDING[:-1]


def _may_travel(name: str) -> bool:
    if name == TABLE:
        return True
    is_plain = _FILE.fullmatch(name) is not None
    return is_plain and name.endswith(TRAVELS) and name not in (*_STAYS, MANIFEST)


def _fetch(
    repository: str, revision: str | None, folder: Path, endpoint: str | None, watch: Watch
) -> OnHub:
    """Fetches one commit, file by file, into a folder that no one else reads; checked."""
    with _hub_errors(f"{repository} could not be pulled"):
        from huggingface_hub import HfApi, hf_hub_download

        commit = str(HfApi(endpoint=endpoint).model_info(repository, revision=revision).sha)
        where: dict[str, Any] = {"revision": commit, "local_dir": folder, "endpoint": endpoint}
        files, notes, places = [], [], [""]
        for within in places:
            hf_hub_download(repository, f"{within}{MANIFEST}", **where)
            stated = _listed(repository, folder / within)
            files += [f"{within}{name}" for name in (MANIFEST, *stated)]
            for number, (name, sha256) in enumerate(stated.items()):
                watch("pulling", number, len(stated), name)
                hf_hub_download(repository, f"{within}{name}", **where)
                is_as_stated = sha256_of(folder / within / name) == sha256
                if not is_as_stated and name in DECIDING:
                    raise UserError(
                        f"{name} of {repository} is not the file that its {MANIFEST} states:"
                        " nothing was pulled. Pull it again, or ask its owner to push it again."
                    )
                if not is_as_stated:
                    notes.append(f"{name} was edited after the model was pushed.")
            if not within:  # the folders inside are fetched before the whole can be opened
                parts = read_json_table(folder / DESCRIPTION, advice=_ADVICE).get("parts", [])
                if not isinstance(parts, list) or not all(map(is_plain_name, parts)):
                    raise UserError(f"The {DESCRIPTION} that was pulled names no folders as parts.")
                places += [f"{part}/" for part in parts]
    return OnHub(repository, commit, folder, tuple(files), (), tuple(notes))


def _listed(repository: str, folder: Path) -> Mapping[str, str]:
    """The files of a model folder by its manifest, none of which but such as travel."""
    stated = read_manifest(folder).files
    for name in stated:
        if not _may_travel(name):
            raise UserError(
                f"{repository} lists {name!r:.80}, which is no file of a model folder that travels"
                f" ({', '.join(TRAVELS)}): nothing was pulled."
            )
    if DESCRIPTION not in stated:
        raise UserError(f"{repository} is no litotes model: it has no {DESCRIPTION}.")
    return stated


@contextmanager
def _hub_errors(what: str) -> Iterator[None]:
    """Turns what the Hub or the network refuses into a sentence."""
    require_extra("hub", "A model on the Hugging Face Hub")
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, HFValidationError

    try:
        yield
    except EntryNotFoundError as error:
        raise UserError(f"{what}: it is no litotes model folder ({reason_of(error)}).") from error
    except (HfHubHTTPError, HFValidationError, OSError) as error:
        raise UserError(f"{what}: {reason_of(error)} {_ADVICE}") from error
    except Exception as error:
        # what carries the library's requests has had several names, and errors of its own
        if not type(error).__module__.startswith(("httpx", "httpcore", "requests")):
            raise
        raise UserError(f"{what}: {reason_of(error)} {_ADVICE}") from error

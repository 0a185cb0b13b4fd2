"""The deployment files: commands that the program understands, probes that it answers, and no
rights that are not needed.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from litotes.cli.main import parse

DEPLOY = Path(__file__).parent.parent / "deploy"
DRAIN_SECONDS = 10


def container() -> str:
    return (DEPLOY / "Containerfile").read_text("utf-8").replace("\\\n", " ")


def unit() -> dict[str, list[str]]:
    """The settings of the systemd unit, in their order."""
    settings: dict[str, list[str]] = {}
    for line in (DEPLOY / "litotes.service").read_text("utf-8").splitlines():
        if "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            settings.setdefault(name, []).append(value)
    return settings


@pytest.fixture(scope="module")
def documents() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml")
    text = (DEPLOY / "kubernetes.yaml").read_text("utf-8")
    return {one["kind"]: one for one in yaml.safe_load_all(text)}


@pytest.fixture(scope="module")
def pod(documents: dict[str, Any]) -> Any:
    return documents["Deployment"]["spec"]["template"]["spec"]


@pytest.fixture(scope="module")
def inside(pod: Any) -> Any:
    """The pod's only container."""
    (only,) = pod["containers"]
    return only


def last(instruction: str) -> list[str]:
    """The arguments of an instruction in the Containerfile, as JSON has them."""
    return list(json.loads(re.findall(rf"^{instruction} (\[.*\])$", container(), re.MULTILINE)[-1]))


def test_commands_are_understood_and_serve_the_model_exported(inside: Any) -> None:
    shown = [
        last("ENTRYPOINT")[1:] + last("CMD"),
        shlex.split(unit()["ExecStart"][0])[1:],
        inside["command"][1:] + inside["args"],
    ]
    for name in ("Containerfile", "litotes.service", "kubernetes.yaml"):
        text = (DEPLOY / name).read_text("utf-8")
        commands = re.findall(r"^(?:#\s+|RUN )\S*bin/litotes (.*)$", text, re.MULTILINE)
        shown += map(shlex.split, commands)
    assert len(shown) >= 4
    for arguments in shown:
        assert parse(arguments).command, arguments
    (exported,) = re.findall(
        r"litotes export --model builtin --int8 --allow 3 --out (\S+)", container()
    )
    assert f"--model={exported}" in inside["args"]
    assert exported in last("CMD")


def test_the_container_is_built_without_cuda_and_run_without_rights() -> None:
    text = container()
    assert text.count("\nFROM ") == 2
    assert all(
        "--constraint constraints.txt" in line for line in re.findall(r"pip install[^&\n]*", text)
    )
    assert "nvidia" in text  # the build ends where CUDA came along
    assert re.search(r"^ARG BASE=python:3\.12-slim$", text, re.MULTILINE)
    second = text.rpartition("\nFROM ")[2]
    assert "HF_HUB_OFFLINE=1" in second
    assert re.search(r"^USER (?!0)\d+:\d+$", second, re.MULTILINE)
    assert "pip" not in second
    copied = set(re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE))
    ignore = (DEPLOY.parent / ".dockerignore").read_text("utf-8").splitlines()
    for name in " ".join(copied).split():
        assert (DEPLOY.parent / name).exists()
        assert f"!{name}" in ignore


def test_probes_ask_what_the_service_answers_and_wait_for_the_drain(pod: Any, inside: Any) -> None:
    paths = {"startup": "/ready", "liveness": "/live", "readiness": "/ready"}
    for name, path in paths.items():
        assert inside[f"{name}Probe"]["httpGet"] == {"path": path, "port": "http"}
    assert inside["ports"] == [{"name": "http", "containerPort": 8000}]
    assert "--port=8000" in inside["args"]
    assert "/live" in container()
    _, pause = inside["lifecycle"]["preStop"]["exec"]["command"]
    assert pod["terminationGracePeriodSeconds"] > DRAIN_SECONDS + int(pause)
    assert int(unit()["TimeoutStopSec"][0]) > DRAIN_SECONDS


def test_the_pod_has_no_rights(documents: dict[str, Any], pod: Any, inside: Any) -> None:
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert f"USER {pod['securityContext']['runAsUser']}:" in container()
    assert pod["automountServiceAccountToken"] is False
    assert inside["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert set(inside["resources"]) == {"requests", "limits"}
    assert documents["NetworkPolicy"]["spec"]["egress"] == []


def test_documents_speak_of_the_same_thing(
    documents: dict[str, Any], pod: Any, inside: Any
) -> None:
    specs = {kind: one["spec"] for kind, one in documents.items()}
    labels = specs["Deployment"]["template"]["metadata"]["labels"]
    assert specs["Deployment"]["selector"]["matchLabels"] == labels == specs["Service"]["selector"]
    assert specs["PodDisruptionBudget"]["selector"]["matchLabels"] == labels
    assert specs["NetworkPolicy"]["podSelector"]["matchLabels"] == labels
    scaler = specs["HorizontalPodAutoscaler"]
    assert scaler["scaleTargetRef"]["name"] == documents["Deployment"]["metadata"]["name"]
    assert scaler["minReplicas"] > specs["PodDisruptionBudget"]["minAvailable"]
    assert f"--allow-host={documents['Service']['metadata']['name']}" in inside["args"]
    mounts = {mount["name"]: mount["mountPath"] for mount in inside["volumeMounts"]}
    assert f"--token-file={mounts['token']}/litotes-token" in inside["args"]
    assert {volume["name"] for volume in pod["volumes"]} == set(mounts)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_the_unit_exposes_little() -> None:
    command = ["systemd-analyze", "security", "--offline=yes", "--no-pager"]
    command.append(str(DEPLOY / "litotes.service"))
    said = subprocess.run(command, capture_output=True, text=True)
    if "offline" in said.stderr or "Overall exposure" not in said.stdout:
        pytest.skip("this systemd-analyze cannot judge a file")
    level = re.search(r"Overall exposure level for .*: (\d+\.\d+)", said.stdout)
    assert level is not None
    assert float(level[1]) < 2

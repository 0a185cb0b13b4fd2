"""The deployment files: commands that the program understands, probes that it answers, and no
rights that are not needed.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from importlib.util import find_spec
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


def documents() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml")
    return {
        one["kind"]: one
        for one in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text("utf-8"))
    }


def pod() -> Any:
    return documents()["Deployment"]["spec"]["template"]["spec"]


def container_of_pod() -> Any:
    (only,) = pod()["containers"]
    return only


def last(instruction: str) -> list[str]:
    """The arguments of an instruction in the Containerfile, as JSON has them."""
    return list(json.loads(re.findall(rf"^{instruction} (\[.*\])$", container(), re.MULTILINE)[-1]))


def arguments_shown() -> dict[str, list[str]]:
    shown = {
        "Containerfile": last("ENTRYPOINT")[1:] + last("CMD"),
        "litotes.service": shlex.split(unit()["ExecStart"][0])[1:],
        "kubernetes.yaml": (
            container_of_pod()["command"][1:] + container_of_pod()["args"]
            if find_spec("yaml")
            else []
        ),
    }
    for name in list(shown):
        text = (DEPLOY / name).read_text("utf-8")
        for number, command in enumerate(
            re.findall(r"^(?:#\s+|RUN )\S*bin/litotes (.*)$", text, re.MULTILINE)
        ):
            shown[f"{name} {number}"] = shlex.split(command)
    return {name: arguments for name, arguments in shown.items() if arguments}


def test_there_are_commands_to_check() -> None:
    assert len(arguments_shown()) >= 4


@pytest.mark.parametrize("name", arguments_shown())
def test_commands_are_understood(name: str) -> None:
    arguments = arguments_shown()[name]
    assert parse(arguments).command


def test_the_model_served_is_the_one_exported() -> None:
    exported = re.findall(
        r"litotes export --model builtin --int8 --allow 3 --out (\S+)", container()
    )
    assert exported == ["/models/builtin"]
    assert f"--model={exported[0]}" in container_of_pod()["args"]
    assert exported[0] in last("CMD")


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


def test_probes_ask_what_the_service_answers() -> None:
    probes = {
        name: container_of_pod()[f"{name}Probe"] for name in ("startup", "liveness", "readiness")
    }
    assert {name: probe["httpGet"] for name, probe in probes.items()} == {
        "startup": {"path": "/ready", "port": "http"},
        "liveness": {"path": "/live", "port": "http"},
        "readiness": {"path": "/ready", "port": "http"},
    }
    assert container_of_pod()["ports"] == [{"name": "http", "containerPort": 8000}]
    assert "--port=8000" in container_of_pod()["args"]
    assert "/live" in container()


def test_whoever_stops_it_waits_for_the_drain() -> None:
    _, pause = container_of_pod()["lifecycle"]["preStop"]["exec"]["command"]
    assert pod()["terminationGracePeriodSeconds"] > DRAIN_SECONDS + int(pause)
    assert int(unit()["TimeoutStopSec"][0]) > DRAIN_SECONDS


def test_the_pod_has_no_rights() -> None:
    assert pod()["securityContext"]["runAsNonRoot"] is True
    assert f"USER {pod()['securityContext']['runAsUser']}:" in container()
    assert pod()["automountServiceAccountToken"] is False
    context = container_of_pod()["securityContext"]
    assert context == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert set(container_of_pod()["resources"]) == {"requests", "limits"}
    assert documents()["NetworkPolicy"]["spec"]["egress"] == []


def test_documents_speak_of_the_same_thing() -> None:
    found = documents()
    assert set(found) == {
        "Deployment",
        "Service",
        "PodDisruptionBudget",
        "HorizontalPodAutoscaler",
        "NetworkPolicy",
    }
    labels = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert (
        found["Deployment"]["spec"]["selector"]["matchLabels"]
        == labels
        == found["Service"]["spec"]["selector"]
    )
    assert found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert found["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"] == labels
    scaler = found["HorizontalPodAutoscaler"]["spec"]
    assert scaler["scaleTargetRef"]["name"] == found["Deployment"]["metadata"]["name"]
    assert scaler["minReplicas"] > found["PodDisruptionBudget"]["spec"]["minAvailable"]
    assert [metric["resource"]["name"] for metric in scaler["metrics"]] == ["cpu"]
    assert f"--allow-host={found['Service']['metadata']['name']}" in container_of_pod()["args"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container_of_pod()["volumeMounts"]}
    assert f"--token-file={mounts['token']}/litotes-token" in container_of_pod()["args"]
    assert {volume["name"] for volume in pod()["volumes"]} == set(mounts)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_the_unit_exposes_little() -> None:
    command = [
        "systemd-analyze",
        "security",
        "--offline=yes",
        "--no-pager",
        str(DEPLOY / "litotes.service"),
    ]
    said = subprocess.run(command, capture_output=True, text=True)
    if "offline" in said.stderr or "Overall exposure" not in said.stdout:
        pytest.skip("this systemd-analyze cannot judge a file")
    level = re.search(r"Overall exposure level for .*: (\d+\.\d+)", said.stdout)
    assert level is not None
    assert float(level[1]) < 2

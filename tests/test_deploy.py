"""The files of `deploy/`: valid, and every name one of them uses is one it gives."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from memoranda.cli import command_group
from memoranda.serve.http import host_and_port

DEPLOY = Path(__file__).parents[1] / "deploy"


class _Strict(yaml.SafeLoader):
    """Refuses a key that stands twice, as kubectl and compose do."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        assert len(keys) == len({*keys}), f"a key stands twice: {keys}"
        return super().construct_mapping(node, deep)


def documents(name: str) -> list[Any]:
    return [
        document for document in yaml.load_all((DEPLOY / name).read_text(), _Strict) if document
    ]


COMPOSE = documents("compose.yaml")[0]
KUBERNETES = {document["kind"]: document for document in documents("kubernetes.yaml")}
POD = KUBERNETES["Deployment"]["spec"]["template"]
CONTAINER = POD["spec"]["containers"][0]


def check_command(words: list[str]) -> None:
    """Every command and option there is, parsed as the shell's would be."""
    group = command_group()
    with group.make_context("memory", list(words), resilient_parsing=True) as context:
        name, command, rest = group.resolve_command(context, list(words))
        with command.make_context(name, rest, parent=context, resilient_parsing=False) as inner:
            assert inner.params or not rest


def dockerfile(word: str) -> list[str]:
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    return [
        line.split(" ", 1)[1].strip() for line in text.splitlines() if line.startswith(f"{word} ")
    ]


@pytest.mark.parametrize(
    "words",
    [
        re.findall(r'"([^"]+)"', dockerfile("CMD")[0]),
        CONTAINER["args"],
        *(service["command"] for service in COMPOSE["services"].values() if "command" in service),
    ],
    ids=" ".join,
)
def test_every_command_is_one_there_is(words):
    check_command(words)


def test_compose_itself_takes_the_file():
    command = ["docker", "compose", "--file", str(DEPLOY / "compose.yaml"), "--profile", "mirror"]
    if (
        shutil.which("docker") is None
        or subprocess.run([*command[:2], "version"], capture_output=True).returncode
    ):
        pytest.skip("needs docker with its plugin compose")
    environment = os.environ | {"POSTGRES_PASSWORD": "x"}
    ran = subprocess.run(
        [*command, "config", "--format", "json"], env=environment, capture_output=True, text=True
    )

    assert ran.returncode == 0, ran.stderr
    services = json.loads(ran.stdout)["services"]
    assert services.keys() == COMPOSE["services"].keys()


@pytest.mark.parametrize("version", ["1.28", "1.34"])
def test_the_manifest_fits_the_schemas_of_kubernetes(version: str):
    schemas = pytest.importorskip(
        "kubernetes_validate", reason="needs the package kubernetes-validate"
    )
    for document in documents("kubernetes.yaml"):
        schemas.validate(document, version, strict=True)


def test_every_service_of_compose_refers_to_what_is_there():
    services = COMPOSE["services"]
    for name, definition in services.items():
        assert {*definition.get("depends_on", {})} <= services.keys() - {name}
        for other_service, how in definition.get("depends_on", {}).items():
            assert how["condition"] != "service_healthy" or "healthcheck" in services[other_service]
        volumes = {volume.partition(":")[0] for volume in definition.get("volumes", ())}
        files = {volume for volume in volumes if volume.startswith("./")}
        for file in files:
            assert (DEPLOY / file).is_file()
        assert volumes - files <= COMPOSE["volumes"].keys()
        assert "image" in definition
    used = []
    for service in services.values():
        used += [
            volume.partition(":")[0]
            for volume in service.get("volumes", ())
            if not volume.startswith("./")
        ]

    assert sorted(used) == sorted({*used}) == sorted(COMPOSE["volumes"])
    assert (
        DEPLOY / services["memory"]["build"]["context"] / services["memory"]["build"]["dockerfile"]
    ).is_file()


def test_the_database_of_compose_is_the_one_its_servers_call():
    services = COMPOSE["services"]
    own_environment = services["postgres"]["environment"]
    for name in ("memory", "mirror"):
        environment = services[name]["environment"]
        assert environment["MEMORY_HOME"].startswith("postgresql://memory@postgres/memory?space=")
        assert environment["PGPASSWORD"] == own_environment["POSTGRES_PASSWORD"]
    assert own_environment["POSTGRES_PASSWORD"].startswith("${POSTGRES_PASSWORD:?")
    # The image makes that one a superuser
    assert own_environment["POSTGRES_USER"] != "memory"
    (statement,) = [
        line
        for line in (DEPLOY / "role.sh").read_text().splitlines()
        if line.startswith("create role")
    ]
    assert statement.startswith("create role memory login nosuperuser nobypassrls password")
    assert "ports" not in services["postgres"]
    assert all(port.startswith("127.0.0.1:") for port in services["memory"]["ports"])


def test_every_name_of_the_manifest_leads_somewhere():
    labels = POD["metadata"]["labels"]
    assert KUBERNETES["Deployment"]["spec"]["selector"]["matchLabels"] == labels
    assert KUBERNETES["Service"]["spec"]["selector"] == labels
    assert KUBERNETES["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    space = KUBERNETES["Namespace"]["metadata"]["name"]
    assert {kubernete["metadata"].get("namespace", space) for kubernete in KUBERNETES.values()} == {
        space
    }
    secret = KUBERNETES["Secret"]
    for variable in CONTAINER["env"]:
        reference = variable["valueFrom"]["secretKeyRef"]
        assert reference["name"] == secret["metadata"]["name"]
        assert reference["key"] in secret["stringData"]
    names = {mount["name"] for mount in POD["spec"]["volumes"]}
    mount_names = {mount["name"] for mount in CONTAINER["volumeMounts"]}
    assert mount_names == names
    ports = {port["name"] for port in CONTAINER["ports"]}
    assert {port["targetPort"] for port in KUBERNETES["Service"]["spec"]["ports"]} <= ports
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        request = CONTAINER[probe]["httpGet"]
        assert request["port"] in ports
        assert {"name": "Host", "value": "127.0.0.1"} in request["httpHeaders"]
    assert CONTAINER["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert CONTAINER["livenessProbe"]["httpGet"]["path"] == "/healthz"


def test_the_port_is_the_same_everywhere():
    words = [re.findall(r'"([^"]+)"', dockerfile("CMD")[0]), CONTAINER["args"]]
    ports = {host_and_port(word[word.index("--http") + 1])[1] for word in words}
    ports |= {int(exposed) for exposed in dockerfile("EXPOSE")}
    ports |= {container_port["containerPort"] for container_port in CONTAINER["ports"]}
    for mapping in COMPOSE["services"]["memory"]["ports"]:
        ports |= {int(port) for port in mapping.split(":")[1:]}

    assert ports == {8377}
    assert "127.0.0.1:8377/readyz" in " ".join(COMPOSE["services"]["memory"]["healthcheck"]["test"])


def test_nobody_runs_as_root_and_the_cache_is_where_the_user_may_write():
    assert dockerfile("USER") == ["10001:10001"]
    context = POD["spec"]["securityContext"]
    assert context["runAsUser"] == 10001
    assert context["runAsNonRoot"] is True
    assert "XDG_CACHE_HOME=/cache" in dockerfile("ENV")
    mounted = {mount["mountPath"] for mount in CONTAINER["volumeMounts"]}
    assert {"/cache", "/tmp"} <= mounted
    assert CONTAINER["securityContext"]["readOnlyRootFilesystem"]
    assert any(volume.endswith(":/cache") for volume in COMPOSE["services"]["memory"]["volumes"])

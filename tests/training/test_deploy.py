"""Files for clusters: they are valid, and say what the commands and the servers understand."""

import os
import subprocess
import sys
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from keras_transformer.serving import server_files
from training.device_request import COORDINATOR, PROCESS_ID, PROCESSES, DeviceRequest, read_device_request
from training.train import parse_arguments

DEPLOY = Path(__file__).parents[2] / "training" / "deploy"
KUBERNETES = "1.34"


def resources(name):
    return list(yaml.safe_load_all((DEPLOY / name).read_text()))


def container(name, kind):
    (resource,) = (one for one in resources(name) if one["kind"] == kind)
    (found,) = resource["spec"]["template"]["spec"]["containers"]
    return found


@pytest.mark.proof("The Kubernetes manifests are valid by the strict schemas of Kubernetes, offline")
@pytest.mark.parametrize("name", ["serving.yaml", "training-job.yaml"])
def test_manifests_are_valid(name, seen):
    for resource in resources(name):
        version = kubernetes_validate.validate(resource, KUBERNETES, strict=True)
        assert version.startswith(KUBERNETES)
        seen(f"{name}: {resource['kind']} {resource['metadata']['name']} is valid in Kubernetes {version}")


def test_a_mistake_in_a_manifest_is_found():
    (_, job) = resources("training-job.yaml")
    job["spec"]["template"]["spec"]["containers"][0]["imagee"] = "no such key"
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, KUBERNETES, strict=True)


@pytest.mark.proof("The SLURM script passes shellcheck")
def test_shellcheck():
    program = Path(sys.executable).with_name("shellcheck")
    checked = subprocess.run([program, DEPLOY / "slurm.sh"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


@pytest.fixture
def srun(tmp_path):
    """Runs the SLURM script with an `srun` that prints the command it was to run."""
    for name, text in {"scontrol": "echo node07; echo node08", "srun": 'shift; printf "%s\\n" "$KERAS_BACKEND" "$@"'}.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / name).chmod(0o755)

    def run(*words, **environment):
        own = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SLURM_JOB_ID": "123456", "SLURM_JOB_NODELIST": "node[07-08]"}
        command = ["bash", DEPLOY / "slurm.sh", *words]
        return subprocess.run(command, env={**own, **environment}, capture_output=True, text=True)

    return run


def test_the_command_that_slurm_runs(srun):
    ran = srun("--set", "data.batch_tokens=25000", RECIPE="recipes/my.toml", SLURM_GPUS_ON_NODE="8")
    backend, python, flag, module, *words = ran.stdout.splitlines()
    assert (backend, python, flag, module) == ("jax", ".venv/bin/python", "-m", "keras_transformer_training.train")
    options = parse_arguments(words)
    assert (options.recipe, str(options.output), options.resume) == (["recipes/my.toml"], "runs/my", True)
    assert options.set == ["data.batch_tokens=25000"]
    request = read_device_request(options, {"SLURM_NTASKS": "2", "SLURM_PROCID": "1"})
    assert request == DeviceRequest(devices=8, processes=2, process_id=1, coordinator="node07:18456")


def test_slurm_without_a_recipe(srun):
    ran = srun()
    assert ran.returncode != 0 and "Say which recipe to train" in ran.stderr


def test_the_command_of_the_training_job():
    job = container("training-job.yaml", "Job")
    assert job["command"][:2] == ["keras-transformer", "train"]
    options = parse_arguments([*job["command"][2:], *job["args"]])
    environment = {one["name"]: one["value"] for one in job["env"]}
    request = read_device_request(options, {**environment, "JOB_COMPLETION_INDEX": "1"})
    assert (request.devices, request.processes, request.process_id) == (job["resources"]["limits"]["nvidia.com/gpu"], 2, 1)
    assert options.resume and environment["KERAS_BACKEND"] == "jax"
    assert {COORDINATOR[0], PROCESSES[0]} <= environment.keys() and "JOB_COMPLETION_INDEX" in PROCESS_ID


def test_the_pods_of_the_training_job_find_each_other():
    service, job = resources("training-job.yaml")
    spec, name = job["spec"], job["metadata"]["name"]
    environment = {one["name"]: one["value"] for one in container("training-job.yaml", "Job")["env"]}
    port = service["spec"]["ports"][0]["port"]
    assert environment[COORDINATOR[0]] == f"{name}-0.{service['metadata']['name']}:{port}"
    assert spec["completions"] == spec["parallelism"] == int(environment[PROCESSES[0]])
    assert spec["template"]["spec"]["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["selector"].items() <= spec["template"]["metadata"]["labels"].items()


def test_the_server_is_that_of_the_exports():
    server = container("serving.yaml", "Deployment")
    compose = yaml.safe_load(
        server_files.COMPOSE.substitute(
            name="pronouns", image=f"{server_files.SERVER}-gpu", threads="", gpu=server_files.GPU, hint=""
        )
    )
    written = compose["services"]["pronouns"]
    assert server["image"] == written["image"]
    assert set(server["args"]) == {flag for flag in written["command"] if "cors" not in flag}


def test_requests_come_when_the_model_is_available():
    deployment, service, budget = resources("serving.yaml")
    probe = container("serving.yaml", "Deployment")["readinessProbe"]["exec"]["command"][-1]
    assert "GET /v1/models/pronouns " in probe and "AVAILABLE" in probe
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == labels == budget["spec"]["selector"]["matchLabels"]
    assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}

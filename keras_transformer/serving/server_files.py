"""What a person needs beside a model to start a server with it: settings, containers, commands, a page to try it."""

import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from string import Template

from keras_transformer.serving.playground import write_playground
from keras_transformer.text.files import write_bytes

SERVER = "2.20.0"  # The version of TensorFlow Serving that exports are made for.
BATCH_SIZES = (1, 2, 4, 8, 16, 32)

BATCHING = Template("""\
# Requests that wait are translated together, in batches of these sizes. On a CPU, let the largest be no more than the clients
# that ask at once divided by the cores: otherwise one core may have them all, and the others nothing to do.
max_batch_size { value: $largest }
$allowed
# How long a request waits for others.
batch_timeout_micros { value: 2000 }
# How many batches are translated at the same time: as many as the machine has cores, or two for a GPU.
num_batch_threads { value: $threads }
# How many batches may wait. Beyond that, requests are refused at once, and clients try again later.
max_enqueued_batches { value: 64 }
""")

MONITORING = """\
prometheus_config {
  enable: true
  path: "/monitoring/prometheus/metrics"
}
"""

SESSION = """\
# What TensorFlow does to a graph before it answers for the first time. Exported graphs have little left to improve: without
# these lines the first answers take longer, and later ones are no faster.
graph_options {
  rewrite_options {
    meta_optimizer_iterations: ONE
    constant_folding: OFF
    arithmetic_optimization: OFF
    common_subgraph_elimination: OFF
    layout_optimizer: OFF
    loop_optimization: OFF
    implementation_selector: OFF
    memory_optimization: NO_MEM_OPT
    disable_tfg_optimizer: true
  }
}
"""

MODELS = Template("""\
# The newest version serves, and `stable` is another name for version $version. A server reads this when it starts.
model_config_list {
  config {
    name: "$name"
    base_path: "/models/$name"
    model_platform: "tensorflow"
    model_version_policy { latest { num_versions: 1 } }
    version_labels { key: "stable" value: $version }
  }
}
""")

COMPOSE = Template("""\
# docker compose$hint up -d --wait
services:
  $name:
    image: tensorflow/serving:$image
    ports:  # On this machine only: the server asks nobody who they are.
      - "127.0.0.1:8500:8500"
      - "127.0.0.1:8501:8501"
    volumes:
      - ./:/models/$name:ro
    command:
      - --model_config_file=/models/$name/models.config
      - --allow_version_labels_for_unavailable_models=true
      - --enable_batching=true
      - --batching_parameters_file=/models/$name/batching_parameters.txt
      - --monitoring_config_file=/models/$name/monitoring.config
      - --tensorflow_session_config_file=/models/$name/session.config
      - --rest_api_timeout_in_ms=60000
      - --rest_api_enable_cors_support=true  # For playground.html; leave it away if nobody uses that.
$threads    restart: unless-stopped
    healthcheck:
      test:
        - CMD-SHELL
        - >-
          bash -c 'exec 3<>/dev/tcp/localhost/8501; printf "GET /v1/models/$name HTTP/1.0\\r\\n\\r\\n" >&3;
          grep -q AVAILABLE <&3'
      interval: 10s
      timeout: 5s
      retries: 12
$gpu""")

CPU = """\
      # Sentences share the cores, not the operations of one sentence.
      - --tensorflow_intra_op_parallelism=1
      - --tensorflow_inter_op_parallelism=0
    environment:  # TensorFlow takes its quicker matrix products by itself only on CPUs with VNNI, BF16 or AMX.
      - TF_ENABLE_ONEDNN_OPTS=1
"""

GPU = """\
    deploy:
      resources:
        reservations:
          devices:
            - driver: nvidia
              count: 1
              capabilities: [gpu]
"""

README = Template("""\
# $name

A translation model for TensorFlow Serving, exported by keras_transformer. Version $version is the newest.

## Try it, without Docker

Where keras_transformer is installed, in this folder, for trying and for tests:

    python -m keras_transformer.serving.serve .

and open http://localhost:8501/

## Start a server

With Docker and its compose plugin, in this folder:

    docker compose up -d --wait
$gpu_compose
`--wait` returns when the model answers; `docker compose logs` says what it does, and `docker compose down` ends it. Without
compose:

    docker run --rm -p 127.0.0.1:8500:8500 -p 127.0.0.1:8501:8501 --mount type=bind,source="$$PWD",target=/models/$name \\
        -e TF_ENABLE_ONEDNN_OPTS=1 tensorflow/serving:$server --model_config_file=/models/$name/models.config \\
        --allow_version_labels_for_unavailable_models=true --enable_batching=true \\
        --batching_parameters_file=/models/$name/batching_parameters.txt \\
        --monitoring_config_file=/models/$name/monitoring.config \\
        --tensorflow_session_config_file=/models/$name/session.config --rest_api_timeout_in_ms=60000 \\
        --rest_api_enable_cors_support=true --tensorflow_intra_op_parallelism=1
$gpu_run
## Translate

    curl -d '{"instances": [{"text": $example}]}' http://localhost:8501/v1/models/$name:predict

    curl -d '{"signature_name": "translate_with_options", "instances": [{"text": $example, $options}]}' \\
        http://localhost:8501/v1/models/$name:predict

    curl -d '{"signature_name": "nbest", "instances": [{"text": $example}]}' http://localhost:8501/v1/models/$name:predict

    python -m keras_transformer.serving.client --model $name $quoted_example

or open `playground.html` in a browser. Is the model ready? `curl http://localhost:8501/v1/models/$name`

## What is here

| file | what |
| --- | --- |
| `1/`, `2/`, ... | versions; the server runs the newest, and takes up a new one by itself |
| `models.config` | name, versions, the label `stable` |
| `batching_parameters.txt` | how requests are put together; sizes up to $largest |
| `monitoring.config` | figures for Prometheus at `/monitoring/prometheus/metrics` |
| `session.config` | how TensorFlow prepares the graph: the first answers come sooner |
$compose_files
| `playground.html` | a page to try the model |

Sources of more than $source_tokens tokens are cut, and `truncated` says so. Options: `beam_size` from 1 to $max_beam_size,
`length_penalty` from 0 to 5, `max_length` from 1 to $target_tokens tokens; 0 (for the penalty, -1) is the model's default.

Back to the version before, and to only the newest three:

    python -m keras_transformer.serving.versions . --rollback
    python -m keras_transformer.serving.versions . --keep 3
""")


GPU_COMPOSE = """
On a GPU, with the NVIDIA container toolkit:

    docker compose -f docker-compose.gpu.yml up -d --wait
"""
GPU_RUN = f"""
On a GPU, with `--gpus all`, the image `tensorflow/serving:{SERVER}-gpu`, and without `-e TF_ENABLE_ONEDNN_OPTS=1` and
`--tensorflow_intra_op_parallelism=1`.
"""
COMPOSE_ON_GPU = "docker-compose.gpu.yml"
COMPOSE_FILE = "| `docker-compose.yml` | a server on a CPU |"
COMPOSE_FILES = f"| `docker-compose.yml`, `{COMPOSE_ON_GPU}` | a server on a CPU, on a GPU |"


def write_server_files(
    folder: Path,
    name: str,
    version: int,
    info: dict,
    batch_sizes: Sequence[int],
    examples: Sequence[str],
    languages: Sequence[str] | None = None,
):
    """Writes everything that stands beside the versions. Each file is replaced when the new one is complete.

    Args:
        folder: The folder of the model.
        name: The model's name on the server.
        version: The newest version.
        info: What `export_info.json` says: `defaults`, `limits` and `device` are used.
        batch_sizes: The batch sizes that the server allows.
        examples: Texts to try; the commands have the first of them.
        languages: The codes of the source and the target language, if they are known.
    """
    defaults, limits = info["defaults"], info["limits"]
    on_gpu = info["device"] == "gpu"  # An export for GPUs runs on CPUs too; one for CPUs runs there alone.
    values = {
        **limits,
        "max_beam_size": limits["beam_size"],
        "name": name,
        "version": version,
        "server": SERVER,
        "largest": max(batch_sizes),
        "allowed": "\n".join(f"allowed_batch_sizes: {size}" for size in sorted(batch_sizes)),
        "threads": os.cpu_count() or 1,
        "example": json.dumps(examples[0], ensure_ascii=False).replace("'", "'\\''"),  # Within single quotes of a shell.
        "quoted_example": shlex.quote(examples[0]),
        "options": f'"beam_size": {defaults["beam_size"]}, "length_penalty": {defaults["length_penalty"]}, "max_length": 0',
        "gpu_compose": GPU_COMPOSE if on_gpu else "",
        "gpu_run": GPU_RUN if on_gpu else "",
        "compose_files": COMPOSE_FILES if on_gpu else COMPOSE_FILE,
    }
    cpu = {"image": SERVER, "threads": CPU, "gpu": "", "hint": ""}
    gpu = {"image": f"{SERVER}-gpu", "threads": "", "gpu": GPU, "hint": f" -f {COMPOSE_ON_GPU}"}
    files = {
        "batching_parameters.txt": BATCHING.substitute(values),
        "monitoring.config": MONITORING,
        "session.config": SESSION,
        "models.config": MODELS.substitute(values),
        "docker-compose.yml": COMPOSE.substitute({**values, **cpu}),
        "README.md": README.substitute(values),
    }
    if on_gpu:
        files[COMPOSE_ON_GPU] = COMPOSE.substitute({**values, **gpu})
    for file, text in files.items():
        write_bytes(Path(folder) / file, text.encode())
    page = Path(folder) / f".playground.{os.getpid()}"
    write_playground(
        page,
        name,
        defaults={"beam_size": defaults["beam_size"], "length_penalty": defaults["length_penalty"]},
        limits={"beam_size": limits["beam_size"], "max_length": limits["target_tokens"]},
        examples=examples,
        languages=languages,
    )
    os.replace(page, Path(folder) / "playground.html")

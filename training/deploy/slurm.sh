#!/bin/bash
# Trains a recipe on several machines of a SLURM cluster, one JAX process on each:
#
#   RECIPE=wmt14-en-de-big sbatch --nodes=2 --gpus-per-node=8 training/deploy/slurm.sh
#
# Submit it from a folder that all machines see under the same path, as they do RUN and the environment. If a process or a machine fails, all
# others end (--kill-on-bad-exit), the job goes back into the queue (--requeue) and goes on from its last checkpoint (--resume).
#
#   RECIPE   a recipe's name, or the path of a .toml file
#   RUN      where the run goes (runs/ and the recipe's name)
#   DEVICES  devices of each machine (all GPUs that SLURM gives it)
#   PYTHON   the interpreter, for which the package is installed (.venv/bin/python)
#   PORT     where the processes meet (15000 and the job's last four digits)
#
# Further words go to `keras-transformer train`, such as --set data.batch_tokens=25000.

#SBATCH --job-name=keras-transformer
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=16
#SBATCH --time=24:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=slurm-%x-%j.out

set -euo pipefail

recipe="${RECIPE:?Say which recipe to train: RECIPE=wmt14-en-de-big sbatch training/deploy/slurm.sh}"
run="${RUN:-runs/$(basename "$recipe" .toml)}"
devices="${DEVICES:-${SLURM_GPUS_ON_NODE:-1}}"
port="${PORT:-$((15000 + SLURM_JOB_ID % 10000))}"

mapfile -t hosts < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
export KERAS_BACKEND=jax

# How many processes there are and which one is whose, each learns from SLURM_NTASKS and SLURM_PROCID.
srun --kill-on-bad-exit=1 "${PYTHON:-.venv/bin/python}" -m keras_transformer_training.train "$recipe" \
    --output "$run" --resume --devices "$devices" --coordinator "${hosts[0]}:$port" "$@"

#!/bin/sh
# Carries one run, or one task of an array of runs, inside a job of Slurm or Kubernetes. Usage: batch.sh FOLDER
#
# FOLDER is a run's, or a queue's with a file `cells` of `name folder` lines, of which a task of the array takes
# the line of its number. It is constant: Slurm keeps a copy of it, and a requeued job starts that copy again with
# the same id; the run's own wrapper then knows its attempts.
set -u
umask 077
cd -- "${1:?}" || exit 76
run=$1
task=${SLURM_ARRAY_TASK_ID:-${JOB_COMPLETION_INDEX:-}}
if [ -n "$task" ] && [ -r cells ]; then
  cell=$(sed -n "$((task + 1))p" cells)
  run=${cell#* }
  [ -n "$cell" ] && cd -- "$run" || exit 76
fi
if [ -n "${SLURM_JOB_ID:-}" ]; then
  printf '%s\n' "$SLURM_JOB_ID" >".rgt/job.part$$" && mv -f ".rgt/job.part$$" .rgt/job
fi
IFS= read -r wrapper <.rgt/plan/wrapper || exit 76
exec sh "$wrapper" "$run"

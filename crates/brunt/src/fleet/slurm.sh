#!/bin/bash
# A fleet of brunt: @AGENTS@ agents and their controller as one job. Printed by `brunt fleet slurm`; sbatch submits it.
# The job ends with the exit code of the controller, and leaves its report in the job's output.
#SBATCH --job-name=brunt
#SBATCH --nodes=@NODES@
#SBATCH --ntasks=@AGENTS@
#SBATCH --ntasks-per-node=@PER_NODE@
# The nodes that measure run no other job.
#SBATCH --exclusive
# The job begins again on other nodes if one fails; the output of both attempts is kept.
#SBATCH --requeue
#SBATCH --open-mode=append
# This script hears a minute before the time limit, so that a report is written and secrets are removed.
#SBATCH --signal=B:TERM@60
@OPTIONS@
set -euo pipefail
umask 077

brunt=@BINARY@
# All nodes see this folder.
shared=@SHARED@
result="$SLURM_SUBMIT_DIR/brunt-$SLURM_JOB_ID.json"

# What belongs to this job alone: the secrets of the fleet, and the plan. No other user can read it.
private="$shared/brunt-job-$SLURM_JOB_ID"
rm -rf -- "$private"
# A node that failed has left them there.
if [ "${SLURM_RESTART_COUNT:-0}" -gt 1 ]; then
    echo "brunt was requeued once already; it is not started again" >&2
    exit 1
fi
mkdir -m 0700 -- "$private"
trap 'rm -rf -- "$private"' EXIT
"$brunt" agent --new-auth "$private/auth" > /dev/null

# The plan is part of this script: a job that waits in the queue runs what was printed, whatever happens to the file meanwhile.
cat > "$private/plan.toml" << '@END@'
@PLAN@@END@

# This script runs on the first node of the allocation, and so does the controller. BRUNT_CONTROLLER may name that node
# otherwise, e.g. by its address on a faster network.
mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
host=${BRUNT_CONTROLLER:-${nodes[0]}}

# Each agent has its part of the cores of a node, and stays on them.
cpus=$((SLURM_CPUS_ON_NODE / @PER_NODE@))
if [ "$cpus" -lt 1 ]; then cpus=1; fi

# An agent that fails does not end the others. Before the start nothing replaces it, and the controller gives up after five
# minutes; behind it the controller reports what is lost.
srun --ntasks=@AGENTS@ --ntasks-per-node=@PER_NODE@ --cpus-per-task="$cpus" --cpu-bind=cores \
    --kill-on-bad-exit=0 --input=none --label \
    "$brunt" agent --join "$host:@PORT@" --auth "$private/auth"@FILES@ &
agents=$!

"$brunt" run "$private/plan.toml" --listen "[::]:@PORT@" --auth "$private/auth" -o "$result" &
controller=$!
trap 'kill -TERM "$controller"' TERM
# Where no agent is left, the controller would wait for others. It has a minute to end by itself.
{
    tail --pid="$agents" -f /dev/null
    timeout 60 tail --pid="$controller" -f /dev/null || {
        echo "brunt: no agent is left" >&2
        kill -TERM "$controller"
    }
} &
status=0
wait "$controller" || status=$?
# A signal ends the wait, but not the controller, which still has its report to write.
while kill -0 "$controller" 2> /dev/null; do
    status=0
    wait "$controller" || status=$?
done

# Agents end with their controller. Those that do not are ended.
timeout 30 tail --pid="$agents" -f /dev/null || kill "$agents" || true
wait "$agents" || true
exit "$status"

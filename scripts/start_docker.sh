#!/bin/sh
# Starts a Docker daemon by hand where none runs and there is no init system to do it (a container, a bare CI machine).
# Debian's docker.io is enough. Does nothing when a daemon already answers. Needs root.
#
#   scripts/start_docker.sh          start it, wait until it answers
#   scripts/start_docker.sh stop     end the daemon that this script started
set -eu

state="${ARCHON_DOCKER_STATE:-/var/lib/archon-docker}"
socket="${ARCHON_DOCKER_SOCKET:-/var/run/docker.sock}"
pid_file="$state/dockerd.pid"
log="$state/dockerd.log"

# The API is asked over its socket, so that it does not matter which `docker` client is first on PATH.
answers() {
  [ -S "$socket" ] && curl --silent --fail --max-time 3 --unix-socket "$socket" http://localhost/_ping >/dev/null 2>&1
}

alive() {
  [ -s "$pid_file" ] && kill -0 "$(cat "$pid_file")" 2>/dev/null
}

if [ "${1:-start}" = stop ]; then
  if alive; then kill "$(cat "$pid_file")"; echo "start_docker: asked dockerd $(cat "$pid_file") to end"; fi
  exit 0
fi

if answers; then
  echo "start_docker: a daemon answers on $socket"
  exit 0
fi
if [ "$(id -u)" != 0 ]; then
  echo "start_docker: no daemon answers on $socket, and starting one needs root" >&2
  exit 1
fi
if ! command -v dockerd >/dev/null; then
  echo "start_docker: dockerd is not installed; on Debian: apt-get install docker.io" >&2
  exit 1
fi

mkdir -p "$state"
# Jobs have no network, so the daemon needs no bridge and no firewall rules, which are what most often fail in a container.
setsid dockerd --host "unix://$socket" --pidfile "$pid_file" --bridge none --iptables=false --ip6tables=false \
  >>"$log" 2>&1 </dev/null &

waited=0
until answers; do
  if [ "$waited" -ge 60 ]; then
    echo "start_docker: dockerd did not answer within 60 s; the end of $log:" >&2
    tail -n 20 "$log" >&2
    exit 1
  fi
  sleep 1
  waited=$((waited + 1))
done
echo "start_docker: dockerd answers on $socket (log: $log)"

#!/bin/sh
# Install the system packages that the sandbox, the browser test and fast serving on a CPU need, where this is Debian and we may.
# Without them the Python side still installs; what then cannot run says so.
set -eu
missing=""
for pair in bwrap:bubblewrap dockerd:docker.io mmdebstrap:mmdebstrap chromium:chromium; do
    command -v "${pair%%:*}" >/dev/null 2>&1 || missing="$missing ${pair##*:}"
done
ls /usr/lib/*/libtcmalloc_minimal.so.4 >/dev/null 2>&1 || missing="$missing libtcmalloc-minimal4"
[ -n "$missing" ] || exit 0
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "not installed:$missing (the sandbox needs bubblewrap or Docker; the browser test needs chromium; serving on a CPU gains a sixth from libtcmalloc)" >&2
    exit 0
fi
echo "installing:$missing"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null

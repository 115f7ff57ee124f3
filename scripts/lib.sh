# SPDX-License-Identifier: Apache-2.0
# What the scripts share. Source it; it changes to the project's folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The project's folder may lie anywhere: cached objects are found again after a move.
export CCACHE_BASEDIR="${CCACHE_BASEDIR:-$PWD}" CCACHE_NOHASHDIR=1

jobs="${PUSHROD_JOBS:-$(nproc)}"

packages_build=(ca-certificates g++ cmake make ninja-build git ccache python3 libgloo-dev
  libboost1.81-dev libboost-json1.81-dev libyaml-cpp-dev prometheus-cpp-dev libcli11-dev libxxhash-dev
  libhiredis-dev libssl-dev)
packages_test=(libgtest-dev libgmock-dev clang-format-14 redis-server)
packages_more=(clang-14 libclang-rt-14-dev clang-tidy-14 python3-venv)

# say WORDS...: a part begins, with the seconds since the script started.
say() { printf '\n== [%s s] %s\n' "$SECONDS" "$*"; }

fail() {
  printf '%s\n' "$*" >&2
  exit 1
}

# need_packages NAME...: installs what is missing as root; otherwise says how, and stops.
need_packages() {
  local missing=() name
  for name in "$@"; do
    dpkg-query -W -f '${Status}' "$name" 2>/dev/null | grep -q '^install ok installed$' || missing+=("$name")
  done
  [ "${#missing[@]}" -gt 0 ] || return 0
  if ! command -v apt-get >/dev/null; then
    fail "These packages (Debian 12 names) are needed, and there is no apt-get to install them: ${missing[*]}"
  fi
  if [ "$(id -u)" != 0 ]; then
    fail "Packages are missing. Run this, then try again:
  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}"
  fi
  say "installing ${missing[*]}"
  local log
  log=$(mktemp)
  if ! { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 30 "$log" >&2
    rm -f "$log"
    fail "apt-get could not install: ${missing[*]}"
  fi
  rm -f "$log"
}

# quietly COMMAND...: its output is shown only when it fails.
quietly() {
  local log status=0
  log=$(mktemp)
  "$@" >"$log" 2>&1 || status=$?
  if [ "$status" != 0 ]; then
    tail -n 100 "$log" >&2
  fi
  rm -f "$log"
  return "$status"
}

# build PRESET [TARGET...]: configures and builds.
build() {
  local preset=$1 targets=()
  shift
  [ "$#" = 0 ] || targets=(--target "$@")
  say "building ($preset)"
  quietly cmake --preset "$preset" || fail "configuring the preset $preset failed"
  cmake --build --preset "$preset" -j "$jobs" "${targets[@]}"
}

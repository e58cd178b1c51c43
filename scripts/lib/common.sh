# Shared by the scripts of this folder; sourced, never run. Expects `set -euo pipefail` in the caller.
# shellcheck shell=bash

# The repository root, from the place of this file, so that scripts run from any folder.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
readonly root

# die SENTENCE: the one way out for a failing step. The sentence says what is wrong and how to go on.
die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# usage FILE: the comment block at the top of a script is its --help text.
usage() {
  sed -n '2,/^[^#]/{/^#/!q; s/^# \{0,1\}//; p}' "$1"
}

# A step's title: bold on a terminal, plain elsewhere and under NO_COLOR.
say() {
  if [[ -t 1 && -z ${NO_COLOR:-} ]]; then
    printf '\033[1m%s\033[0m\n' "$*"
  else
    printf '%s\n' "$*"
  fi
}

# quietly LOG SENTENCE COMMAND...: output goes to LOG; on failure its last lines and the sentence are shown.
quietly() {
  local log=$1 sentence=$2
  shift 2
  mkdir -p "$(dirname "$log")"
  if ! "$@" >"$log" 2>&1; then
    tail -n 25 "$log" >&2
    die "$sentence The whole output is in $log."
  fi
}

# configure PRESET [CMAKE OPTIONS...]: quick when the build folder is up to date.
configure() {
  local preset=$1
  shift
  (cd "$root" && quietly "build/$preset-configure.log" \
    "CMake could not configure preset '$preset'; the lines above name what is missing." \
    cmake --preset "$preset" "$@")
}

# build PRESET TARGETS...: ninja's moving line on a terminal, silence in a pipe; the compiler's messages always.
build() {
  local preset=$1 options=()
  shift
  [[ -t 1 ]] || options=(--quiet)
  ninja -C "$root/build/$preset" -j "$(nproc)" "${options[@]}" "$@" ||
    die "the build of preset '$preset' failed; the compiler's message above says where. Rerun to go on from there."
}

# Open MPI refuses root unless told twice; these scripts run in containers, where root is the rule.
allow_mpi_as_root() {
  if [[ $EUID -eq 0 ]]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  fi
}

# sources PATTERN...: tracked and new files that git does not ignore, one a line; without git, all but build and run folders.
# The folder is $1, so that checks can look at another tree (their self-tests do).
sources() {
  local tree=$1 pattern
  shift
  if git -C "$tree" rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    git -C "$tree" ls-files --cached --others --exclude-standard -- "$@" | while IFS= read -r file; do
      # A deleted file stays in the index until it is committed.
      [[ -e $tree/$file ]] && printf '%s\n' "$file"
    done | sort -u
  else
    for pattern in "$@"; do
      find "$tree" \( -name build -o -name runs -o -name .git \) -prune -o -type f -name "$pattern" -printf '%P\n'
    done | sort -u
  fi
}

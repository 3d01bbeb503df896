#!/bin/sh
# Installs the Debian packages named as arguments that are missing; asks nothing, and touches neither
# apt nor the network when all are there. Packages after `--` are wanted but not needed: when they
# cannot be had, a warning is all.
set -eu

missing() {
  for package in "$@"; do
    dpkg-query -W -f '${db:Status-Abbrev}\n' "$package" 2>/dev/null | grep -q '^ii' ||
      printf '%s ' "$package"
  done
}

needed=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  needed="$needed $1"
  shift
done
[ $# -eq 0 ] || shift

needed=$(missing $needed)
wanted=$(missing "$@")
[ -n "$needed$wanted" ] || exit 0

command -v apt-get >/dev/null || {
  echo "deps: this is not a Debian system; please install the likes of: $needed$wanted" >&2
  [ -z "$needed" ]
  exit
}
as_root=
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || {
    echo "deps: neither root nor sudo: please install: $needed$wanted" >&2
    [ -z "$needed" ]
    exit
  }
  as_root=sudo
fi

install_packages() {
  $as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "$@" </dev/null
}

echo "deps: installing $needed$wanted"
if [ -n "$needed" ]; then
  install_packages $needed || {
    $as_root apt-get update -q </dev/null
    install_packages $needed
  }
fi
if [ -n "$wanted" ]; then
  install_packages $wanted || {
    $as_root apt-get update -q </dev/null || true
    # One that cannot be had must not cost the others.
    install_packages $wanted || for package in $wanted; do
      install_packages "$package" || echo "deps: went on without $package" >&2
    done
  }
fi

#!/bin/sh
# Sees to it that libraft 0.22 or newer is there, which replica sets are built on. Debian 13 has it
# (libraft-dev); Debian 12's own 0.15 breaks the rule by which entries are committed, and is not
# used. On Debian 12 the packages of bookworm-backports are fetched by apt, which checks their
# signatures, from the mirror that this machine uses, and unpacked below DIRECTORY: the machine's own
# sources and packages stay as they are. Without it all is built but replica sets; that is no error.
#
#   tools/libraft.sh DIRECTORY
set -eu
to=$1
pkg-config --atleast-version=0.22 raft 2>/dev/null && exit 0
[ -e "$to/usr/include/raft.h" ] && exit 0

go_on() {
  echo "deps: went on without libraft 0.22: $1. Replica sets (cluster-nodes) are not built in" >&2
  exit 0
}
command -v apt-get >/dev/null || go_on "this is not a Debian system"
mirror=$(apt-get indextargets --format '$(ORIGIN)|$(CODENAME)|$(REPO_URI)' 'Created-By: Packages' |
  sed -n 's/^Debian|bookworm|//p' | head -n 1)
[ -n "$mirror" ] || go_on "no source of Debian 12 is known here, and the one installed is too old"

echo "deps: fetching libraft from bookworm-backports into $to"
mkdir -p "$to/apt/lists/partial" "$to/apt/cache/archives/partial"
cd "$to"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror bookworm-backports main" \
  >apt/sources.list
fetch() {
  apt-get -q -o Dir::Etc::sourcelist="$PWD/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::State::lists="$PWD/apt/lists" -o Dir::Cache="$PWD/apt/cache" \
    -o APT::Sandbox::User="$(id -un)" "$@" </dev/null >apt/log 2>&1 ||
    { cat apt/log >&2; go_on "it could not be fetched"; }
}
fetch update
fetch download libraft-dev libraft0
rm -rf unpacked
for package in libraft*.deb; do
  case $package in *_0.1[0-9].* | *_0.[0-9].* | *_0.2[01].*) go_on "$package is too old" ;; esac
  dpkg-deb -x "$package" unpacked
done
mv unpacked/usr .
rm -rf apt unpacked libraft*.deb

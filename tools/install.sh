#!/bin/sh
# The part of `make install` beside the programs: configuration, unit, users, man pages, completion.
#
#   tools/install.sh DESTDIR PREFIX SYSCONFDIR
#
# A configuration file that is there already is left alone. The unit is made for PREFIX.
set -eu
cd "$(dirname "$0")/.."
destdir=$1
prefix=$2
sysconfdir=$3

place() { # place MODE SOURCE TARGET
  install -D -m "$1" "$2" "$destdir$3"
}

work=$(mktemp)
pages=$(mktemp -d)
trap 'rm -rf "$work" "$pages"' EXIT
if [ ! -e "$destdir$sysconfdir/cellar/cellar.conf" ]; then
  # What the server writes is in its own directory: it may only read /etc.
  sed 's|^dir \.$|dir /var/lib/cellar|; s|^# aclfile ""$|aclfile users.acl|
       s|^# override-file ""$|override-file override.conf|' conf/cellar.conf >"$work"
  place 640 "$work" "$sysconfdir/cellar/cellar.conf"
fi
place 644 conf/cellar.logrotate "$sysconfdir/logrotate.d/cellar"
place 644 conf/cellar.sysusers "$prefix/lib/sysusers.d/cellar.conf"
place 644 conf/cellar.tmpfiles "$prefix/lib/tmpfiles.d/cellar.conf"

sed "s|/usr/bin/cellar|$prefix/bin/cellar|; s|/etc/cellar|$sysconfdir/cellar|" conf/cellar.service >"$work"
place 644 "$work" "$prefix/lib/systemd/system/cellar.service"
sed "s|/usr/bin/cellar|$prefix/bin/cellar|; s|/etc/cellar|$sysconfdir/cellar|" conf/cellar@.service >"$work"
place 644 "$work" "$prefix/lib/systemd/system/cellar@.service"
place 644 conf/cellar.socket "$prefix/lib/systemd/system/cellar.socket"

place 644 conf/grafana/cellar.json "$prefix/share/doc/cellar/grafana.json"
place 644 conf/prometheus/cellar.rules.yml "$prefix/share/doc/cellar/prometheus.rules.yml"

/usr/bin/python3 tools/man.py "$pages"
for page in "$pages"/*.[1-8]; do
  place 644 "$page" "$prefix/share/man/man${page##*.}/$(basename "$page")"
done
for name in cellar cellar-export cellar-import cellar-benchmark cellar-cluster cellar-heatmap cellar-top cellar-web; do
  place 644 conf/cellar.bash-completion "$prefix/share/bash-completion/completions/$name"
done

#!/bin/sh
# Builds build/cellar_VERSION_ARCH.deb from what `make install` installs.
#
#   tools/deb.sh BUILD
#
# The package creates the user and the directories by its sysusers and tmpfiles entries, starts nothing on
# its own (`systemctl enable --now cellar` does), restarts a running server when it is upgraded, leaves the data
# when it is removed, and takes it away when it is purged.
set -eu
cd "$(dirname "$0")/.."
build=$1
version=$(sed -n 's/.*kVersion{"\([^"]*\)"}.*/\1/p' include/cellar/version.h)
architecture=$(dpkg --print-architecture)
[ -n "$version" ] || { echo "deb: include/cellar/version.h names no version" >&2; exit 1; }

root=build/deb/cellar_${version}_${architecture}
rm -rf build/deb
mkdir -p "$root/DEBIAN" build/deb/debian
make --no-print-directory VARIANT="$(basename "$build")" DESTDIR="$PWD/$root" PREFIX=/usr SYSCONFDIR=/etc install >/dev/null
rm -rf "$root"/usr/lib/libcellar.* "$root/usr/lib/pkgconfig" "$root/usr/include"
find "$root/usr/bin" -type f -exec strip --strip-unneeded {} +
find "$root/usr/share/man" -type f -exec gzip -9n {} +
install -D -m 644 LICENSE "$root/usr/share/doc/cellar/copyright"
# libraft is linked statically: its licence goes along.
for raft in build/deps/usr/share/doc/libraft-dev/copyright /usr/share/doc/libraft-dev/copyright; do
  [ ! -e "$raft" ] || install -D -m 644 "$raft" "$root/usr/share/doc/cellar/copyright.libraft"
done
install -D -m 644 README.md "$root/usr/share/doc/cellar/README.md"
for file in Dockerfile compose.yaml; do
  install -D -m 644 "conf/containers/$file" "$root/usr/share/doc/cellar/containers/$file"
done
install -d -m 750 "$root/etc/cellar"

# The shared libraries' packages, as dpkg knows them.
printf 'Source: cellar\n\nPackage: cellar\nArchitecture: any\n' >build/deb/debian/control
libraries=$(cd build/deb && dpkg-shlibdeps -O --ignore-missing-info "../../$root"/usr/bin/* 2>/dev/null |
  sed -n 's/^shlibs:Depends=//p')

cat >"$root/DEBIAN/control" <<CONTROL
Package: cellar
Version: $version
Architecture: $architecture
Maintainer: the Cellar developers <cellar@localhost>
Section: database
Priority: optional
Depends: $libraries, adduser | systemd-sysusers | systemd
Recommends: redis-tools
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)
Description: wide-column store that speaks the Redis protocol
 Cellar keeps a sparse, persistent, sorted, multi-dimensional map of typed
 cells in memory and serves it to every Redis client. Rows are sorted by key,
 columns are grouped in families, cells have versions.
CONTROL

(cd "$root" && find etc -type f | sed 's|^|/|' | sort) >"$root/DEBIAN/conffiles"

cat >"$root/DEBIAN/postinst" <<'SCRIPT'
#!/bin/sh
set -e
if [ "$1" = configure ]; then
  if command -v systemd-sysusers >/dev/null; then
    systemd-sysusers cellar.conf
  elif ! getent passwd cellar >/dev/null; then
    adduser --system --group --home /var/lib/cellar --no-create-home --quiet cellar
  fi
  if command -v systemd-tmpfiles >/dev/null; then
    systemd-tmpfiles --create cellar.conf || true
  fi
  for directory in /var/lib/cellar /var/log/cellar; do
    [ -d "$directory" ] || install -d -m 750 -o cellar -g cellar "$directory"
  done
  # A first installation: the server may begin a store. Later an empty directory is a disk that is missing.
  if [ -z "$2" ] && [ -z "$(ls -A /var/lib/cellar)" ]; then
    install -m 600 -o cellar -g cellar /dev/null /var/lib/cellar/cellar.new
  fi
  # A store of an earlier version has no aclfile, and a server whose aclfile is missing does not start.
  if [ -e /var/lib/cellar/cellar.manifest ] && [ ! -e /var/lib/cellar/users.acl ]; then
    install -m 600 -o cellar -g cellar /dev/null /var/lib/cellar/users.acl
  fi
  chown root:cellar /etc/cellar /etc/cellar/cellar.conf
  chmod 750 /etc/cellar
  if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    [ -z "$2" ] || systemctl try-restart cellar.service
  fi
fi
SCRIPT
cat >"$root/DEBIAN/prerm" <<'SCRIPT'
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  systemctl disable --now cellar.service >/dev/null 2>&1 || true
  systemctl stop 'cellar@*.service' >/dev/null 2>&1 || true
fi
SCRIPT
cat >"$root/DEBIAN/postrm" <<'SCRIPT'
#!/bin/sh
set -e
if [ "$1" = purge ]; then
  rm -rf /var/lib/cellar /var/log/cellar /run/cellar /etc/cellar
fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
SCRIPT
chmod 755 "$root/DEBIAN/postinst" "$root/DEBIAN/prerm" "$root/DEBIAN/postrm"
dpkg-deb --root-owner-group --build "$root" build >/dev/null
echo "deb: build/cellar_${version}_${architecture}.deb"

#!/bin/sh
# Builds three packages in build/:
#
#   cellar          the server, its tools, libcellar.so: what `make install` installs, but for
#   libcellar-dev   what programs are compiled with against libcellar. It wants the same version of cellar
#                   exactly, since a store must be opened by a library of the version that its server has.
#   python3-cellar  the client of tools/clients/python, with its examples
#
#   tools/deb.sh BUILD
#
# The package cellar creates the user and the directories by its sysusers and tmpfiles entries, starts nothing on
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
dev=build/deb/libcellar-dev_${version}_${architecture}
mkdir -p "$dev/DEBIAN" "$dev/usr/lib" "$dev/usr/share/man"
mv "$root/usr/include" "$dev/usr"
mv "$root/usr/lib/libcellar.so" "$root/usr/lib/pkgconfig" "$dev/usr/lib"
mv "$root/usr/share/man/man3" "$dev/usr/share/man"
find "$root/usr/bin" "$root"/usr/lib/libcellar.so.* -type f -exec strip --strip-unneeded {} +
find "$root/usr/share/man" "$dev/usr/share/man" -type f -exec gzip -9n {} +
install -D -m 644 LICENSE "$root/usr/share/doc/cellar/copyright"
install -D -m 644 LICENSE "$dev/usr/share/doc/libcellar-dev/copyright"
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
libraries=$(cd build/deb && dpkg-shlibdeps -O --ignore-missing-info "../../$root"/usr/bin/* \
  "../../$root"/usr/lib/libcellar.so.* 2>/dev/null |
  sed -n 's/^shlibs:Depends=//p')

cat >"$root/DEBIAN/control" <<CONTROL
Package: cellar
Version: $version
Architecture: $architecture
Maintainer: the Cellar developers <cellar@localhost>
Section: database
Priority: optional
Depends: $libraries, tzdata, adduser | systemd-sysusers | systemd
Recommends: redis-tools
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)
Description: wide-column store that speaks the Redis protocol
 Cellar keeps a sparse, persistent, sorted, multi-dimensional map of typed
 cells in memory and serves it to every Redis client. Rows are sorted by key,
 columns are grouped in families, cells have versions.
CONTROL

(cd "$root" && find etc -type f | sed 's|^|/|' | sort) >"$root/DEBIAN/conffiles"

echo 'activate-noawait ldconfig' >"$root/DEBIAN/triggers"
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
    install -m 640 -o cellar -g cellar /dev/null /var/lib/cellar/cellar.new
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

cat >"$dev/DEBIAN/control" <<CONTROL
Package: libcellar-dev
Version: $version
Architecture: $architecture
Maintainer: the Cellar developers <cellar@localhost>
Section: libdevel
Priority: optional
Depends: cellar (= $version)
Installed-Size: $(du -sk --exclude=DEBIAN "$dev" | cut -f1)
Description: Cellar's wide-column store inside a C++ program: development files
 Headers, pkg-config's file and the manual page of libcellar, which opens a
 store without a server.
CONTROL

# The client is as it is in the tree: there is nothing to build.
python=build/deb/python3-cellar_${version}_all
modules=$python/usr/lib/python3/dist-packages
mkdir -p "$python/DEBIAN"
install -D -m 644 -t "$modules/cellar" tools/clients/python/cellar/*.py tools/clients/python/cellar/py.typed
install -d "$modules/cellar-$version.dist-info"
cat >"$modules/cellar-$version.dist-info/METADATA" <<METADATA
Metadata-Version: 2.1
Name: cellar
Version: $version
Requires-Python: >=3.9
Requires-Dist: redis>=4.3
METADATA
install -D -m 644 LICENSE "$python/usr/share/doc/python3-cellar/copyright"
install -m 644 -t "$python/usr/share/doc/python3-cellar" tools/clients/python/README.md
install -D -m 644 -t "$python/usr/share/doc/python3-cellar/examples" tools/clients/python/examples/*.py
cat >"$python/DEBIAN/control" <<CONTROL
Package: python3-cellar
Version: $version
Architecture: all
Maintainer: the Cellar developers <cellar@localhost>
Section: python
Priority: optional
Depends: python3 (>= 3.9), python3-redis (>= 4.3)
Suggests: cellar
Installed-Size: $(du -sk --exclude=DEBIAN "$python" | cut -f1)
Description: client for Cellar, a wide-column store that speaks the Redis protocol
 Tables, rows, scans, aggregates, transactions and feeds with Python's types,
 for programs that wait and for asyncio, over redis-py.
CONTROL
cat >"$python/DEBIAN/postinst" <<'SCRIPT'
#!/bin/sh
set -e
if [ "$1" = configure ] && command -v py3compile >/dev/null; then
  py3compile -p python3-cellar
fi
SCRIPT
cat >"$python/DEBIAN/prerm" <<'SCRIPT'
#!/bin/sh
set -e
if command -v py3clean >/dev/null; then
  py3clean -p python3-cellar
fi
SCRIPT
chmod 755 "$python/DEBIAN/postinst" "$python/DEBIAN/prerm"

for package in "$python" "$dev" "$root"; do
  dpkg-deb --root-owner-group --build "$package" build >/dev/null
  echo "deb: build/$(basename "$package").deb"
done

#!/bin/sh
# Nothing of the build, and nothing that two clones would share by accident.
set -eu
: > /etc/machine-id
ln -sfn /run/resolv.conf /etc/resolv.conf
echo cua-gym > /etc/hostname
chmod 644 /etc/hostname
rm -f /var/lib/dbus/machine-id /var/lib/systemd/random-seed
rm -f /etc/apt/sources.list.d/* /etc/apt/apt.conf.d/99mmdebstrap
echo "# This image names no mirror: a computer without network cannot use one." \
    > /etc/apt/sources.list
# A cache of fonts holds for a folder's time to the nanosecond, and the archive that carries this
# system keeps whole seconds: without this each first program scans all fonts, 4 s under TCG.
if command -v fc-cache > /dev/null; then
    find /usr/share/fonts /usr/local/share/fonts -type d -exec touch -d "@$(date +%s)" {} + \
        2> /dev/null || true
    fc-cache -s -f
fi
rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/debconf/*-old /var/log/*.log \
    /var/log/apt /var/lib/dpkg/*-old /tmp/* /var/tmp/*

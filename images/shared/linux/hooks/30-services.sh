#!/bin/sh
# What runs: network, ssh, the guest agent, the guest daemon. What must never wake up by itself:
# everything that updates, cleans, trims, scans or asks.
set -eu
systemctl enable --quiet systemd-networkd.service cua-gym-resolv.path ssh.service
if [ -e /etc/systemd/system/cua-guestd.service ]; then
    python3 -m compileall -q /usr/lib/cua-gym
    systemctl enable --quiet cua-guestd.service
fi
for unit in \
    apt-daily.timer apt-daily.service apt-daily-upgrade.timer apt-daily-upgrade.service \
    unattended-upgrades.service packagekit.service packagekit-offline-update.service \
    dpkg-db-backup.timer man-db.timer logrotate.timer motd-news.timer \
    e2scrub_all.timer e2scrub_reap.service fstrim.timer systemd-tmpfiles-clean.timer \
    update-notifier-download.timer update-notifier-motd.timer ua-timer.timer \
    udisks2.service upower.service systemd-networkd-wait-online.service systemd-timesyncd.service \
    systemd-pstore.service systemd-rfkill.service systemd-rfkill.socket \
    systemd-binfmt.service systemd-hwdb-update.service systemd-journal-flush.service \
    systemd-udev-settle.service systemd-update-utmp-runlevel.service \
    getty.target getty@.service serial-getty@.service console-getty.service autovt@.service \
    sleep.target suspend.target hibernate.target hybrid-sleep.target \
    ctrl-alt-del.target dev-hugepages.mount sys-kernel-debug.mount sys-kernel-tracing.mount \
    proc-sys-fs-binfmt_misc.automount modprobe@dm_mod.service modprobe@loop.service \
    modprobe@configfs.service modprobe@fuse.service modprobe@efi_pstore.service
do
    ln -sfn /dev/null "/etc/systemd/system/$unit"
done
# Same for every user manager.
for unit in systemd-tmpfiles-clean.timer gpg-agent.socket gpg-agent-ssh.socket \
    gpg-agent-extra.socket gpg-agent-browser.socket dirmngr.socket
do
    mkdir -p /etc/systemd/user
    ln -sfn /dev/null "/etc/systemd/user/$unit"
done
# Else the file manager waits for the disk service masked above.
rm -f /usr/share/gvfs/remote-volume-monitors/udisks2.monitor
systemctl set-default --quiet graphical.target

#!/bin/sh
# Host keys and the control key belong to this image alone. Only ed25519: making an RSA key costs
# seconds, and loading three keys slows each start of sshd.
set -eu
rm -f /etc/ssh/ssh_host_*
ssh-keygen -q -t ed25519 -N '' -C cua-gym -f /etc/ssh/ssh_host_ed25519_key
home=$(getent passwd "$CUA_CONTROL" | cut -d: -f6)
install -d -m 700 "$home/.ssh"
printf '%s\n' "$CUA_CONTROL_KEY" > "$home/.ssh/authorized_keys"
chmod 600 "$home/.ssh/authorized_keys"
touch "$home/.hushlogin"
rm -f /etc/update-motd.d/* /etc/motd
sed -i '/pam_motd/d; /pam_mail/d; /pam_lastlog/d' /etc/pam.d/sshd /etc/pam.d/login

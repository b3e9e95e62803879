#!/bin/sh
# The two accounts: one that the desktop belongs to and that can do nothing else, one for control.
set -eu
useradd --uid "$CUA_UID" --user-group --create-home --home-dir "$CUA_HOME" --shell /bin/bash \
    --comment "Desktop" "$CUA_USER"
usermod --password '!*' "$CUA_USER"
# No password at all, but not "locked": without PAM, sshd refuses locked accounts.
usermod --password '*' "$CUA_CONTROL"
chmod 755 "$CUA_HOME"

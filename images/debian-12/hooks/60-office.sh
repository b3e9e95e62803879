#!/bin/sh
# LibreOffice makes its profile at its first start, 5 s under TCG and a second here.
set -eu
runuser -u "$CUA_USER" -- env HOME="$CUA_HOME" soffice --headless --norestore --terminate_after_init \
    > /dev/null 2>&1
test -d "$CUA_HOME/.config/libreoffice/4/user/extensions"
rm -rf "$CUA_HOME/.cache"

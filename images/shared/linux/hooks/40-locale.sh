#!/bin/sh
# C.UTF-8 is built in and the default; en_US.UTF-8 is what people set. Time is UTC, always.
set -eu
localedef -i en_US -f UTF-8 en_US.UTF-8
echo "en_US.UTF-8 UTF-8" > /etc/locale.gen
ln -sfn /usr/share/zoneinfo/Etc/UTC /etc/localtime
echo Etc/UTC > /etc/timezone
cat > /etc/default/keyboard <<EOF
XKBMODEL=pc105
XKBLAYOUT=$CUA_LAYOUT
XKBVARIANT=
XKBOPTIONS=
EOF

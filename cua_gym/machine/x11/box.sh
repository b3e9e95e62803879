#!/bin/bash
# From new namespaces to a sandbox and its X server; see sandbox.py, which starts this.
#
#   box.sh ROOT FIRST_ID SIZE_MB WIDTHxHEIGHT DISPLAY_FD FILES_FD CONTROL_FD BWRAP_OPTION...
#
# Runs as root: the host's, or that of a namespace of a normal user's subordinate ids. FIRST_ID is
# here what 0 is inside. What is written lies in one tmpfs, so all of it is gone with the last
# process; nothing of it has a name outside this mount namespace.
set -eu
root=$1 first=$2 size=$3 screen=$4 display=$5 files=$6 control=$7
shift 7

cd "$root" # by "." it may have any name: commas and colons are mount's own
# Inode numbers of 32 bits leave room for xino, without which a file and its folder are on different
# devices: file managers then copy what is dragged instead of moving it.
mount -t tmpfs -o "size=${size}m,mode=1777,inode32" cua-gym /tmp
mkdir -m 1777 /tmp/.X11-unix
mkdir -m 711 /tmp/box
mkdir -m 755 /tmp/box/upper /tmp/box/work /tmp/box/root
chown "$first:$first" /tmp/box/upper
if [ "$files" != - ]; then
    tar -x --xattrs --xattrs-include='*' --numeric-owner -p -C /tmp/box/upper -f "/proc/self/fd/$files"
fi
layers=lowerdir=.,upperdir=/tmp/box/upper,workdir=/tmp/box/work,xino=on
mount -t overlay -o "$layers" cua-gym /tmp/box/root 2> /dev/null ||
    mount -t overlay -o "$layers,userxattr" cua-gym /tmp/box/root
cd /tmp/box

as() {
    exec setpriv --reuid "$1" --regid "$1" --clear-groups --inh-caps=-all -- "${@:2}"
}

# The socket lies in this mount namespace and, by its other name, in a network namespace of the
# server's own: who reaches it is inside, so a cookie would keep nobody out.
# Without RANDR nobody inside can change the screen's size, which is the spec's.
unshare --net -- setpriv --reuid $((first + 60999)) --regid $((first + 60999)) --clear-groups \
    --inh-caps=-all --no-new-privs -- Xvfb :0 -screen 0 "${screen}x24" -extension GLX \
    -extension RANDR -nolisten tcp -noreset -s 0 -ac -displayfd "$display" &
exec {display}>&-

# bwrap may join a user namespace that its own account has made, so this one is made by that account
# and told its ids from here.
mkfifo -m 666 made told
as "$first" unshare --user -- sh -c 'echo > made; read -r _ < told' &
read -r _ < made
echo "0 $first 65000" > "/proc/$!/uid_map"
echo "0 $first 65000" > "/proc/$!/gid_map"
exec 9< "/proc/$!/ns/user"
echo > told

as "$first" bwrap --userns 9 --unshare-ipc --unshare-pid --unshare-uts --unshare-cgroup-try \
     --die-with-parent --new-session --as-pid-1 --uid 0 --gid 0 \
    --hostname cua-gym --clearenv --bind /tmp/box/root / --proc /proc --dev /dev \
    --bind /tmp/.X11-unix /tmp/.X11-unix \
    --chdir / "$@" -- /usr/bin/python3 -IS /run/supervisor.py "$control"

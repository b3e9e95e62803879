"""The clauses that a Linux guest with an X11 desktop must keep to."""

from __future__ import annotations

from cua_gym.image.clause import Clause, Subject, equals, expect, holds, nothing

__all__ = ["LINUX"]

UPDATERS = (
    "apt-daily.timer", "apt-daily-upgrade.timer", "unattended-upgrades.service",
    "packagekit.service", "dpkg-db-backup.timer", "man-db.timer", "logrotate.timer",
    "e2scrub_all.timer", "fstrim.timer", "systemd-tmpfiles-clean.timer",
)  # fmt: skip
_POWERFUL = {"root", "sudo", "wheel", "admin", "adm", "disk", "docker", "kvm", "shadow"}
_OFF = {"masked", "masked-runtime", "disabled", "not-found", "static", ""}


def _free_space(subject: Subject) -> str:
    free = int(subject.run("df --output=avail -B1 / | tail -n 1"))
    return expect(free >= subject.image.manifest.minimum_free_bytes, f"{free / 2**30:.1f} GiB")


def _host_key(subject: Subject) -> str:
    seen = subject.run("cat /etc/ssh/ssh_host_*_key.pub").splitlines()
    wanted = [" ".join(key.split()[:2]) for key in subject.image.manifest.ssh_host_keys]
    found = [" ".join(key.split()[:2]) for key in seen]
    return expect(found == wanted, ", ".join(key.split()[0] for key in found))


def _control_account(subject: Subject) -> str:
    control = subject.image.manifest.accounts.control
    desktop = subject.image.manifest.accounts.desktop
    keys = subject.run(f"cat ~{control['name']}/.ssh/authorized_keys").splitlines()
    expect(keys == [control["public_key"]], f"{len(keys)} keys may log in")
    expect(control["name"] != desktop["name"], "the desktop account controls the machine")
    return str(control["name"])


def _desktop_account(subject: Subject) -> str:
    desktop = subject.image.manifest.accounts.desktop
    uid = subject.run(f"id -u {desktop['name']}")
    expect(uid == str(desktop["uid"]), f"uid {uid}")
    groups = subject.run(f"id -Gn {desktop['name']}")
    expect(not _POWERFUL & set(groups.split()), f"groups {groups}")
    subject.run("! command -v sudo")
    return f"uid {uid}, groups {groups}"


def _updater(unit: str) -> Clause:
    def look(subject: Subject) -> str:
        active = subject.run(f"systemctl is-active {unit} || true")
        enabled = subject.run(f"systemctl is-enabled {unit} 2>/dev/null || true")
        return expect(active != "active" and enabled in _OFF, f"{enabled or 'absent'}, {active}")

    return Clause(f"updater-off/{unit}", "does not run, and will not start by itself", look)


def _session_type(subject: Subject) -> str:
    name = subject.image.manifest.accounts.desktop["name"]
    sessions = subject.run("loginctl --no-legend list-sessions").splitlines()
    ids = [line.split()[0] for line in sessions if name in line.split()]
    kinds = [subject.run(f"loginctl show-session -p Type --value {one}") for one in ids]
    return expect("x11" in kinds and "wayland" not in kinds, ", ".join(kinds))


def _slice(subject: Subject) -> str:
    uid = subject.image.manifest.accounts.desktop["uid"]
    seen = subject.run(
        "for p in $(pgrep -x 'Xorg|xfce4-panel|xfwm4'); do cat /proc/$p/cgroup; done"
    )
    lines = seen.splitlines()
    return expect(
        len(lines) >= 3 and all(f"user-{uid}.slice" in line for line in lines), f"{len(lines)}"
    )


def _screen_size(subject: Subject) -> str:
    width, height = subject.machine.screen.size
    seen = subject.run("xrandr | grep -o 'current [0-9]* x [0-9]*'", user=None)
    frame = subject.machine.screen.grab().rgb
    expect(frame.shape == (height, width, 3), f"the frame is {frame.shape}")
    return expect(seen == f"current {width} x {height}", seen)


LINUX: tuple[Clause, ...] = (
    equals(
        "bios-boot",
        "it started by BIOS",
        "test -e /sys/firmware/efi && echo efi || echo bios",
        "bios",
    ),
    equals("ext4", "the root file system is ext4", "findmnt -no FSTYPE /", "ext4"),
    Clause("free-space", "the promised space is free", _free_space),
    nothing("no-swap", "no swap", "tail -n +2 /proc/swaps"),
    equals("systemd", "process 1 is systemd", "cat /proc/1/comm", "systemd"),
    nothing("no-failed-units", "no unit failed", "systemctl --failed --no-legend --plain"),
    equals("utc", "time is UTC", "date +%Z", "UTC"),
    equals("locale", "the desktop's locale is C.UTF-8", "echo $LANG", "C.UTF-8", None),
    holds("en-us", "en_US.UTF-8 can be chosen", "locale -a", lambda s: "en_US.utf8" in s),
    holds(
        "machine-id",
        "this clone has a machine-id of its own",
        "cat /etc/machine-id",
        lambda s: len(s) == 32,
    ),
    equals(
        "virtio-disk",
        "the disk is bound to VirtIO",
        "basename $(readlink -f /sys/block/vda/device/driver)",
        "virtio_blk",
    ),
    equals(
        "virtio-net",
        "the network card is bound to VirtIO",
        "basename $(readlink -f /sys/class/net/en*/device/driver)",
        "virtio_net",
    ),
    holds(
        "virtio-others",
        "serial, random and input devices are bound to VirtIO",
        "cd /sys/bus/virtio/drivers && for d in virtio_console virtio_rng virtio_input; do "
        "ls -d $d/virtio*; done",
        lambda s: len(s.splitlines()) >= 4,
    ),
    equals(
        "sshd",
        "sshd answers by key and to nobody else",
        "sshd -T | grep -E '^(passwordauthentication|kbdinteractiveauthentication|"
        "permitemptypasswords|authenticationmethods) ' | sort",
        "authenticationmethods publickey\nkbdinteractiveauthentication no\n"
        "passwordauthentication no\npermitemptypasswords no",
    ),
    equals(
        "guest-agent", "the QEMU guest agent runs", "systemctl is-active qemu-guest-agent", "active"
    ),
    equals(
        "guest-daemon",
        "the control channel's daemon runs",
        "systemctl is-active cua-guestd",
        "active",
    ),
    Clause("host-key", "sshd's key is this image's own", _host_key),
    Clause("control-account", "one key opens the control account", _control_account),
    Clause("desktop-account", "the desktop account is plain, without sudo", _desktop_account),
    nothing(
        "no-passwords",
        "no account has a password",
        r"awk -F: '$2 !~ /^[!*]/ {print $1}' /etc/shadow",
    ),
    nothing(
        "no-private-key",
        "no private key but sshd's own",
        "grep -rlsI 'PRIVATE KEY' /root /home /etc /usr/lib/cua-gym "
        "| grep -v '^/etc/ssh/ssh_host_'",
    ),
    *(_updater(unit) for unit in UPDATERS),
    nothing(
        "no-timers", "no timer waits", "systemctl list-timers --no-legend | grep -v '0 timers'"
    ),
    holds(
        "no-package-sources",
        "no mirror is named",
        "cat /etc/apt/sources.list",
        lambda s: not any(line.startswith("deb") for line in s.splitlines()),
    ),
    Clause("x11", "the desktop's session is X11", _session_type),
    Clause("slice", "server and desktop run in the account's slice", _slice),
    holds(
        "slice-bounded",
        "the account cannot start processes without end",
        "cat /sys/fs/cgroup/user.slice/user-1000.slice/pids.max",
        lambda s: s.strip().isdecimal() and int(s) <= 1000,
    ),
    equals("one-bus", "there is one session bus", "pgrep -fc '[d]bus-daemon --session'", "1", None),
    equals(
        "accessibility",
        "the accessibility bus is on",
        "busctl --user get-property org.a11y.Bus /org/a11y/bus org.a11y.Status IsEnabled",
        "b true",
        None,
    ),
    holds(
        "screensaver-off",
        "no screensaver",
        "xset q | grep timeout",
        lambda s: "timeout:  0" in s,
        None,
    ),
    nothing(
        "dpms-off", "the screen is never switched off", "xset q | grep 'DPMS is Enabled'", None
    ),
    nothing(
        "lock-off",
        "nothing locks the screen",
        "pgrep -a 'light-locker|xscreensaver|xfce4-screens|xfce4-power|gnome-screens'",
    ),
    nothing(
        "notifications-off",
        "nothing shows notifications",
        "busctl --user list --no-legend | grep org.freedesktop.Notifications | "
        "grep -v '(activatable)'; ls /usr/share/dbus-1/services | grep -i notif",
        None,
    ),
    nothing(
        "keyring-off",
        "no keyring asks for a password",
        "pgrep -a 'gnome-keyring|kwalletd'; ls /usr/share/dbus-1/services | "
        "grep -i -e keyring -e secrets",
    ),
    equals(
        "key-repeat-off",
        "keys do not repeat",
        "xset q | grep -o 'auto repeat:  *[a-z]*' | head -n 1 | awk '{print $3}'",
        "off",
        None,
    ),
    equals(
        "cursor-blink-off",
        "no text cursor blinks",
        "xfconf-query -c xsettings -p /Net/CursorBlink",
        "false",
        None,
    ),
    equals(
        "animations-off",
        "widgets are not animated",
        "xfconf-query -c xsettings -p /Gtk/EnableAnimations",
        "false",
        None,
    ),
    equals(
        "compositing-off",
        "windows are not composited",
        "xfconf-query -c xfwm4 -p /general/use_compositing",
        "false",
        None,
    ),
    equals(
        "session-not-saved",
        "logging in never restores old windows",
        "xfconf-query -c xfce4-session -p /general/SaveOnExit",
        "false",
        None,
    ),
    holds(
        "office-quiet",
        "LibreOffice shows no tip, first run or recovery",
        "cat ~/.config/libreoffice/4/user/registrymodifications.xcu",
        lambda s: all(
            f'"{name}" oor:op="fuse"><value>false' in s
            for name in ("ShowTipOfTheDay", "FirstRun", "AutoSave")
        ),
        None,
    ),
    holds(
        "browser-quiet",
        "Chromium shows no first run, keyring or restore bubble",
        "cat /etc/chromium.d/* /etc/chromium/policies/managed/*",
        lambda s: all(
            word in s
            for word in (
                "--no-first-run",
                "--password-store=basic",
                "--hide-crash-restore-bubble",
                "MetricsReportingEnabled",
            )
        ),
    ),
    holds(
        "applications",
        "every promised application is there",
        "for a in xfce4-terminal mousepad thunar galculator ristretto xfce4-settings-manager "
        "chromium localc lowriter; do command -v $a || echo missing $a; done",
        lambda s: "missing" not in s,
    ),
    holds(
        "fonts",
        "Latin, CJK and emoji have fonts",
        "for c in :charset=e9 :charset=4f60 :charset=1f600; do fc-list $c | wc -l; done",
        lambda s: all(int(n) > 0 for n in s.split()),
    ),
    Clause("screen-size", "guest, machine and frame agree on the screen's size", _screen_size),
)

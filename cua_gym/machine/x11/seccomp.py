"""The system calls that no program in a light desktop may make.

What could reach around a namespace: making another one, mounting, handles instead of paths, kernel
keys, BPF, sockets of families that no network namespace holds (AF_VSOCK reaches the hypervisor
below the host). Everything else is left to the namespaces and to the lack of capabilities. The
program is classic BPF for x86-64, the images' only architecture.

Source: linux/seccomp.h, linux/filter.h, arch/x86/entry/syscalls/syscall_64.tbl.
"""

from __future__ import annotations

import struct
from errno import EAFNOSUPPORT, ENOSYS, EPERM

__all__ = ["FILTER"]

_DENIED = {
    "syslog": 103, "pivot_root": 155, "acct": 163, "mount": 165, "umount2": 166, "swapon": 167,
    "swapoff": 168, "reboot": 169, "init_module": 175, "delete_module": 176, "quotactl": 179,
    "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250, "unshare": 272,
    "move_pages": 279, "perf_event_open": 298, "name_to_handle_at": 303,
    "open_by_handle_at": 304, "setns": 308, "finit_module": 313, "kexec_file_load": 320,
    "bpf": 321, "userfaultfd": 323, "io_uring_setup": 425, "io_uring_enter": 426,
    "io_uring_register": 427, "open_tree": 428, "move_mount": 429, "fsopen": 430,
    "fsconfig": 431, "fsmount": 432, "fspick": 433, "mount_setattr": 442,
}  # fmt: skip
_CLONE = 56
_CLONE3 = 435  # its flags lie in memory, out of a filter's reach: callers fall back to clone
_NEW_NAMESPACES = 0x7E020000
_SOCKET_CALLS = (41, 53)
_FAMILIES = (1, 2, 10, 16)  # unix, inet, inet6, netlink

_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # in struct seccomp_data
_X86_64 = 0xC000003E
_X32 = 0x40000000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000


def _program() -> bytes:
    code: list[tuple[int, int, int, int]] = []

    def refuse_if(test: int, value: int, errno: int) -> None:
        code.extend([(test, 0, 1, value), (_RETURN, 0, 0, _ERRNO | errno)])

    code += [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, _X86_64)]
    code += [(_RETURN, 0, 0, _ERRNO | ENOSYS), (_LOAD, 0, 0, _NUMBER)]
    refuse_if(_AT_LEAST, _X32, ENOSYS)
    refuse_if(_EQUAL, _CLONE3, ENOSYS)
    for number in _DENIED.values():
        refuse_if(_EQUAL, number, EPERM)
    code += [(_EQUAL, 0, 4, _CLONE), (_LOAD, 0, 0, _FIRST_ARGUMENT)]
    refuse_if(_ANY_BIT, _NEW_NAMESPACES, EPERM)
    code += [(_RETURN, 0, 0, _ALLOW)]
    code += [(_EQUAL, 2, 0, call) if i == 0 else (_EQUAL, 1, 0, call)
             for i, call in enumerate(_SOCKET_CALLS)]  # fmt: skip
    code += [(_RETURN, 0, 0, _ALLOW), (_LOAD, 0, 0, _FIRST_ARGUMENT)]
    for left, family in zip(range(len(_FAMILIES), 0, -1), _FAMILIES, strict=True):
        code += [(_EQUAL, left, 0, family)]
    code += [(_RETURN, 0, 0, _ERRNO | EAFNOSUPPORT), (_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("=HBBI", *line) for line in code)


FILTER = _program()
"""An array of ``struct sock_filter``, as ``bwrap --seccomp`` reads it."""

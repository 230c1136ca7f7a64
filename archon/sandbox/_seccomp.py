"""A system-call filter for `bwrap`: refuses what no candidate needs and what has opened kernels before.

Docker brings a filter of its own; bubblewrap takes one as a compiled classic BPF program. This one is a list of
refusals (EPERM) and not of permissions, so it narrows the kernel's surface and does not close it. On a processor
whose numbers are not here there is none, and the engine says so.
"""

from __future__ import annotations

import errno
import platform
import struct

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""AUDIT_ARCH_* of linux/audit.h."""
_REFUSED = {
    # name: (x86_64, aarch64), from the kernel's system-call tables
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsmount": (432, 432),
    "mount_setattr": (442, 442),
    "unshare": (272, 97),
    "setns": (308, 268),
    "open_by_handle_at": (304, 265),
    "kexec_load": (246, 104),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "quotactl": (179, 60),
}
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_X32 = 0x40000000
"""Numbers from here on are the x32 interface of x86_64: the same calls under other numbers."""


def program(machine: str | None = None) -> bytes | None:
    """Return the filter for a processor (None: this one), None where its numbers are not known."""
    machine = machine or platform.machine()
    if machine not in _ARCHITECTURES:
        return None
    column = list(_ARCHITECTURES).index(machine)
    tests = [(_EQUAL, numbers[column]) for numbers in _REFUSED.values()]
    if machine == "x86_64":
        tests.insert(0, (_AT_LEAST, _X32))
    lines = [
        (_LOAD, 0, 0, 4),  # the architecture
        (_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
        (_LOAD, 0, 0, 0),  # the call's number
        # Each test jumps over those after it and over the permission, to the refusal.
        *((code, len(tests) - place, 0, number) for place, (code, number) in enumerate(tests)),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _ERRNO | errno.EPERM),
    ]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)

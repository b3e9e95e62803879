"""Pixels pushed by QEMU: a client of its D-Bus display over socket pairs.

Responsible for the two D-Bus connections and the thread that always drains them (QEMU would buffer
without bound for a listener that stops reading). The picture itself is `screen.py`'s.

Source: QEMU's ``ui/dbus-display1.xml``; the D-Bus specification for authentication and messages.
"""

from __future__ import annotations

import array
import os
import select
import socket
import threading
from collections.abc import Callable, Iterator

from jeepney import DBusAddress, HeaderFields, Message, MessageType, new_method_call
from jeepney.low_level import MessageFlag, Parser
from jeepney.wrappers import new_error, new_method_return

from cua_gym.errors import MachineError
from cua_gym.machine.qemu.qmp import Qmp
from cua_gym.machine.qemu.screen import LiveScreen

__all__ = ["DBusDisplay"]

_CONSOLE = DBusAddress(
    "/org/qemu/Display1/Console_0", bus_name="org.qemu", interface="org.qemu.Display1.Console"
)

# Pixman formats whose bytes in memory are B, G, R, then noise: x8r8g8b8 and a8r8g8b8.
_BGRX = (0x20020888, 0x20028888)


class DBusDisplay:
    """One listener on a QEMU process's first console; ends with `close` or with the process."""

    def __init__(self, qmp: Qmp, screen: LiveScreen, lost: Callable[[str], MachineError]) -> None:
        """Register with QEMU and feed ``screen`` from then on, without waiting for the answer.

        Args:
            lost: makes the error that users of the screen get when the pixels end.
        """
        self._screen = screen
        self._lost = lost
        self._closing = False
        control, control_theirs = socket.socketpair()
        listener, listener_theirs = socket.socketpair()
        self._control, self._listener = _Wire(control), _Wire(listener)
        self._thread = threading.Thread(target=self._serve, name="cua-gym-display", daemon=True)
        try:
            with control_theirs, listener_theirs:
                # All that we have to say is said before QEMU has its ends: it reads in order.
                self._control.authenticate()
                self._listener.authenticate()
                register = new_method_call(_CONSOLE, "RegisterListener", "h", (listener_theirs,))
                self._control.send(register)
                qmp.execute("getfd", {"fdname": "display"}, fds=[control_theirs.fileno()])
                self._thread.start()
                qmp.execute("add_client", {"protocol": "@dbus-display", "fdname": "display"})
        except BaseException:
            self.close()
            raise

    def stop(self) -> None:
        """From now on the end of the pixels is no failure."""
        self._closing = True

    def close(self) -> None:
        """Stop the thread and close the sockets; idempotent."""
        self.stop()
        wires = (self._control, self._listener)
        for wire in wires:
            wire.shut()  # wakes the thread
        if self._thread.is_alive():
            self._thread.join()
        for wire in wires:
            wire.sock.close()

    def _serve(self) -> None:
        try:
            poll = select.poll()
            handlers = {
                self._control.sock.fileno(): (self._control, self._answered),
                self._listener.sock.fileno(): (self._listener, self._called),
            }
            for fd in handlers:
                poll.register(fd, select.POLLIN)
            while not self._closing:
                for fd, _ in poll.poll():
                    wire, handle = handlers[fd]
                    for message in wire.receive():
                        handle(message)
        except (OSError, EOFError, ValueError, KeyError) as error:
            if not self._closing:
                self._screen.fail(self._lost(f"the display ended: {error!r}"))

    def _answered(self, message: Message) -> None:
        """Replies and signals of QEMU's side; only a refusal matters."""
        if message.header.message_type == MessageType.error:
            raise ValueError(f"QEMU refused the listener: {message.body}")

    def _called(self, message: Message) -> None:
        """A call of QEMU on our listener; each must be answered."""
        if message.header.message_type != MessageType.method_call:
            return
        reply = new_method_return(message)
        match message.header.fields[HeaderFields.member]:
            case "Scanout":
                width, height, stride, pixel_format, data = message.body
                _check_format(pixel_format)
                self._screen.whole(width, height, stride, data)
            case "Update":
                x, y, width, height, stride, pixel_format, data = message.body
                _check_format(pixel_format)
                self._screen.part(x, y, width, height, stride, data)
            # QEMU 9 and newer ask which further listener interfaces there are: none.
            case "GetAll":
                reply = new_method_return(message, "a{sv}", ({"Interfaces": ("as", [])},))
            case "Get":
                reply = new_method_return(message, "v", (("as", []),))
            case "Disable" | "MouseSet" | "CursorDefine":
                # Blanked, or a pointer of the host's: -device VGA draws its own into the pixels.
                pass
            case member:
                reply = new_error(
                    message, "org.freedesktop.DBus.Error.UnknownMethod", "s", (str(member),)
                )
        if not message.header.flags & MessageFlag.no_reply_expected:
            self._listener.send(reply)


def _check_format(pixel_format: int) -> None:
    if pixel_format not in _BGRX:
        raise ValueError(f"the display sends pixel format {pixel_format:#x}, not 32-bit BGRX")


class _Wire:
    """One D-Bus connection of ours: handshake as a client, then messages."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._parser = Parser()
        self._handshake = bytearray()
        self._lines_due = 2  # OK and AGREE_UNIX_FD
        self._serial = 0

    def authenticate(self) -> None:
        """The whole client side at once; the answers are read with the first messages."""
        identity = str(os.geteuid()).encode().hex().encode()
        self.sock.sendall(b"\0AUTH EXTERNAL " + identity + b"\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n")

    def send(self, message: Message) -> None:
        self._serial += 1
        fds = array.array("i")
        data = message.serialise(self._serial, fds)
        if fds:
            socket.send_fds(self.sock, [data], list(fds))
        else:
            self.sock.sendall(data)

    def receive(self) -> Iterator[Message]:
        """Messages completed by what can be read now."""
        data = self.sock.recv(1 << 20)
        if not data:
            raise EOFError("QEMU closed its end")
        if self._lines_due:
            data = self._take_lines(data)
        self._parser.add_data(data)
        while (message := self._parser.get_next_message()) is not None:
            yield message

    def _take_lines(self, data: bytes) -> bytes:
        self._handshake += data
        while self._lines_due:
            line, end, rest = bytes(self._handshake).partition(b"\r\n")
            if not end:
                return b""
            if not line.startswith((b"OK ", b"AGREE_UNIX_FD")):
                raise ValueError(f"QEMU refused D-Bus authentication: {line!r}")
            self._lines_due -= 1
            self._handshake[:] = rest
        return bytes(self._handshake)

    def shut(self) -> None:
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # QEMU's end is gone already

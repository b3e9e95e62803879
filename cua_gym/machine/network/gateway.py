"""The only way out of a machine's network namespace: names are answered, connections carried.

For named hosts there is no route at all. Each allowed name has an address of 198.18.0.0/15 (RFC
2544: for tests, never on the internet), every one of which is the namespace's own loopback; a
connection to it is accepted here, and carried to the host of that name by this process, byte for
byte. So any program that speaks TCP works, TLS stays end to end, and nothing else exists.

An open network has a route, by slirp4netns (user-mode, no root needed), which is told to keep off
the host's loopback; only names are answered here.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import ipaddress
import socket
import threading
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Self, cast

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.rrset

from cua_gym.machine.network.namespace import Namespace
from cua_gym.machine.network.policy import Network, Policy, reachable
from cua_gym.machine.network.way_out import WayOut

__all__ = ["NAMESERVER", "Gateway"]

NAMESERVER = "198.18.0.1"
"""Where names are answered, inside."""

_NAMES = ipaddress.IPv4Network("198.18.0.0/15")
_MOST_NAMES = 4096
_MOST_CONNECTIONS = 256
_TTL_S = 5
_CONNECT_S = 20.0
_END_S = 3.0
"""A lookup under way cannot be broken off; it ends by itself."""
_CHUNK = 1 << 16


class Gateway:
    """One machine's network. A context manager; `close` is idempotent and leaves nothing.

    Args:
        network: hosts, or ``"open"``.

    Raises:
        MachineError: it cannot be made here; the message names what is missing.
    """

    def __init__(self, network: Network) -> None:
        self._policy = Policy.of(network)
        self._addresses = _Addresses(self._policy.names)
        self._way_out: WayOut | None = None
        self._closed = False
        self._connections: set[asyncio.Task[None]] = set()
        servers = sorted({NAMESERVER, "127.0.0.1", *_nameservers()})
        own = [f"{one}/32" for one in servers if not ipaddress.ip_address(one).is_loopback]
        own.remove(f"{NAMESERVER}/32")
        # A route out does not lead to link-local services: that net is the namespace's own, too.
        self._place = Namespace.make(
            [f"{NAMESERVER}/15", "169.254.0.1/16", *own],
            [(one, 53) for one in servers],
            self._policy.listened,
        )
        self._up: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name="cua-gym-gateway", daemon=True)
        try:
            if self._policy.ports is None:
                self._way_out = WayOut(self._place)
            self._thread.start()
            self._up.result()
        except BaseException:
            self.close()
            raise

    def enter(self, keep: Callable[[int], int]) -> list[str]:
        """See `Namespace.enter`."""
        return self._place.enter(keep)

    def close(self) -> None:
        """End every connection; idempotent."""
        if self._closed:
            return
        self._closed = True
        if self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # it ended just now
                self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(_END_S)
        if self._way_out is not None:
            self._way_out.close()
        self._place.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        """Listen until the end, at which every task is cancelled."""
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        with contextlib.ExitStack() as ends:
            try:
                for end in self._place.datagrams:
                    transport, _ = await self._loop.create_datagram_endpoint(
                        lambda: _Questions(self._answer), sock=end
                    )
                    ends.callback(transport.close)
                for end in self._place.listeners:
                    server = await asyncio.start_server(self._accepted, sock=end, limit=_CHUNK)
                    ends.callback(server.close)
            except BaseException as error:  # raised where the gateway is made
                self._up.set_exception(error)
                return
            self._up.set_result(None)
            await self._stop.wait()

    # names

    async def _answer(self, wire: bytes) -> bytes | None:
        """The answer to a question about a name; None to what is none."""
        try:
            query = dns.message.from_wire(wire)
            [question] = query.question
        except (dns.exception.DNSException, ValueError):
            return None
        if query.flags & dns.flags.QR:
            return None
        answer = dns.message.make_response(query)
        name = question.name.to_text(omit_final_dot=True)
        if not self._policy.allows(name):
            answer.set_rcode(dns.rcode.NXDOMAIN)
        elif (question.rdtype, question.rdclass) == (dns.rdatatype.A, dns.rdataclass.IN):
            try:
                addresses = await self._addresses_of(name)
            except socket.gaierror as error:
                again = error.errno == socket.EAI_AGAIN
                answer.set_rcode(dns.rcode.SERVFAIL if again else dns.rcode.NXDOMAIN)
            else:
                if addresses:
                    rrset = dns.rrset.from_text_list(question.name, _TTL_S, "IN", "A", addresses)
                    answer.answer.append(rrset)
        return answer.to_wire()

    async def _addresses_of(self, name: str) -> list[str]:
        if self._policy.ports is not None:
            address = self._addresses.of(name)
            return [address] if address else []
        return await self._resolved(name, 0, socket.AF_INET)

    async def _resolved(self, name: str, port: int, family: int = 0) -> list[str]:
        """Where this host finds a name, without addresses that no name may stand for."""
        try:
            found = await self._loop.getaddrinfo(name, port, family=family, type=socket.SOCK_STREAM)
        except ValueError as error:  # a label that no resolver takes; a guest may ask for anything
            raise socket.gaierror(socket.EAI_NONAME, f"no name: {error}") from error
        return [str(address[0]) for *_, address in found if reachable(str(address[0]))]

    # connections

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(self._connections) >= _MOST_CONNECTIONS:
            writer.transport.abort()
            return
        self._connections.add(task)
        try:
            with contextlib.suppress(OSError, TimeoutError):
                await self._carry(reader, writer)
        finally:
            self._connections.discard(task)
            writer.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry a connection to the host whose address it was made to."""
        address, port = writer.get_extra_info("sockname")
        name = self._addresses.name(address)
        if name is None or not self._policy.allows(name, port):
            return
        far_reader, far_writer = await self._connected(name, port)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(_pump(reader, far_writer))
                both.create_task(_pump(far_reader, writer))
        except* OSError:
            pass  # one of the two is gone; so is the other
        finally:
            far_writer.transport.abort()

    async def _connected(
        self, name: str, port: int
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        error = OSError(f"{name} has no address")
        async with asyncio.timeout(_CONNECT_S):
            for address in await self._resolved(name, port):
                try:
                    return await asyncio.open_connection(address, port, limit=_CHUNK)
                except OSError as refused:
                    error = refused
        raise error


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


class _Questions(asyncio.DatagramProtocol):
    """Questions in datagrams; what fails is not answered."""

    def __init__(self, answer: Callable[[bytes], Awaitable[bytes | None]]) -> None:
        self._answer = answer
        self._asked: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: Any) -> None:
        if len(self._asked) < _MOST_CONNECTIONS:
            task = asyncio.get_running_loop().create_task(self._serve(data, addr))
            self._asked.add(task)
            task.add_done_callback(self._asked.discard)

    async def _serve(self, data: bytes, addr: Any) -> None:
        answer = await self._answer(data)
        if answer is not None:
            self._transport.sendto(answer, addr)


class _Addresses:
    """Names and the addresses that stand for them: the same in every gateway, as far as may be.

    A guest that was restored from a state still knows what it was told before.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._by_name: dict[str, str] = {}
        self._by_address: dict[str, str] = {}
        for name in names:
            self.of(name)

    def of(self, name: str) -> str | None:
        """The address of a name; None when there are too many."""
        name = name.lower()
        if name not in self._by_name:
            if len(self._by_name) >= _MOST_NAMES:
                return None
            slot = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")
            while (address := _nth(slot)) in self._by_address:
                slot += 1
            self._by_name[name], self._by_address[address] = address, name
        return self._by_name[name]

    def name(self, address: str) -> str | None:
        """Whose address it is."""
        return self._by_address.get(address)


def _nth(slot: int) -> str:
    """An address that is not the net's, the name server's or the broadcast's."""
    return str(_NAMES[2 + slot % (_NAMES.num_addresses - 3)])


def _nameservers(path: Path = Path("/etc/resolv.conf")) -> list[str]:
    """IPv4 name servers of this host: QEMU's user network sends its guest's questions to them."""
    found = []
    with contextlib.suppress(OSError):
        for line in path.read_text(errors="replace").splitlines():
            words = line.split()
            if words[:1] == ["nameserver"] and len(words) > 1:
                with contextlib.suppress(ValueError):
                    found.append(str(ipaddress.IPv4Address(words[1])))
    return found

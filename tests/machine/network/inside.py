"""Questions to a network from inside: a JSON list of them in, a list of answers out.

Names are asked of the address that the gateway answers at, by hand: this program sees the host's
``/etc/resolv.conf``. An answer of None says that there was none.
"""

import http.client
import json
import socket
import struct
import sys

NAMESERVER = ("198.18.0.1", 53)
TIMEOUT_S = 20.0


def datagram(text):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        end.settimeout(1.0)
        end.sendto(bytes.fromhex(text), NAMESERVER)
        try:
            return end.recv(1024).hex()
        except TimeoutError:
            return None


def name(host):
    labels = b"".join(bytes([len(part)]) + part.encode() for part in host.split("."))
    question = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + labels + b"\0" + b"\0\1\0\1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        end.settimeout(TIMEOUT_S)
        end.sendto(question, NAMESERVER)
        answer = end.recv(1024)
    if answer[3] & 15 or not answer[7]:
        return None
    return socket.inet_ntoa(answer[-4:])


def connected(host, port):
    address = host if host[0].isdigit() else name(host)
    if address is None:
        raise OSError("no such name")
    return socket.create_connection((address, port), TIMEOUT_S)


def request(method, host, port, path, body=None):
    web = http.client.HTTPConnection(host, port)
    try:
        web.sock = connected(host, port)
        web.request(method, path, body)
        return web.getresponse().read()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        web.close()


def get(host, port, path):
    body = request("GET", host, port, path)
    return None if body is None else body.decode()


def post(host, port, size):
    body = bytes(range(256)) * (size // 256)
    return request("POST", host, port, "/", body) == body[::-1]


def hold(host, port, count):
    """How many of that many connections are served while all are open."""
    ends = [connected(host, port) for _ in range(count)]
    served = 0
    for end in ends:
        try:
            end.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            served += bool(end.recv(16))
        except OSError:
            pass
    for end in ends:
        end.close()
    return served


def source(address):
    """The address that is spoken from to reach one; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        end.connect((address, 9))
        return end.getsockname()[0]


def interfaces():
    return sorted(name for _, name in socket.if_nameindex())


KINDS = {f.__name__: f for f in (datagram, name, get, post, hold, source, interfaces)}
print(json.dumps([KINDS[kind](*rest) for kind, *rest in json.loads(sys.argv[1])]))

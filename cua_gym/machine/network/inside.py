"""What runs in the new namespace: addresses, sockets, hand them over, end. No imports of ours."""

import json
import socket
import subprocess
import sys


def main() -> None:
    """Do what standard input says; the descriptors go to the socket named by the argument."""
    wanted = json.load(sys.stdin)
    lines = ["link set lo up", *(f"address add {one} dev lo" for one in wanted["addresses"])]
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), text=True, check=True)
    sockets = []
    for address, port in wanted["datagrams"]:
        end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        end.bind((address, port))
        sockets.append(end)
    for port in wanted["ports"]:
        end = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        end.bind(("0.0.0.0", port))
        end.listen(128)
        sockets.append(end)
    with open("/proc/self/ns/net") as network, open("/proc/self/ns/user") as user:  # noqa: PTH123
        fds = [network.fileno(), user.fileno(), *(end.fileno() for end in sockets)]
        with socket.socket(fileno=int(sys.argv[1])) as back:
            socket.send_fds(back, [b"!"], fds)


main()

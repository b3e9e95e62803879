#!/usr/bin/python3 -I
"""A small price service in three parts: ``prices feed|store|front SETTINGS``.

The feed writes the prices of the newest delivery, the store serves them, the front answers
customers with what it asks of the store.
"""

import json
import os
import sys
import time
from pathlib import Path


def say(text):
    print(time.strftime("%Y-%m-%d %H:%M:%S"), text, flush=True)


def settings(path):
    pairs = [line.split("=", 1) for line in Path(path).read_text().splitlines() if "=" in line]
    return {key.strip(): value.strip() for key, value in pairs}


def variable(name):
    value = os.environ.get(name)
    if not value:
        sys.exit(say(f"{name} is not set") or 1)
    return value


def feed(conf):
    currency, lock = variable("CURRENCY"), Path(conf["lock"])
    try:
        with lock.open("x") as file:
            file.write(f"{os.getpid()}\n")
    except FileExistsError:
        sys.exit(say(f"{lock} is held by process {lock.read_text().strip()}, nothing done") or 1)
    try:
        deliveries = sorted(Path(conf["inbox"]).glob("delivery-*.csv"))
        if not deliveries:
            raise FileNotFoundError(2, "No deliveries", conf["inbox"])
        lines = deliveries[-1].read_text().splitlines()[1:]
        prices = {item: float(price) for item, price in (line.split(",") for line in lines)}
        whole = Path(conf["data"], "prices.json")
        fresh = whole.with_suffix(".new")
        fresh.write_text(json.dumps({"currency": currency, "prices": prices}))
        fresh.replace(whole)
        say(f"{len(prices)} prices of {deliveries[-1].name}")
    finally:
        lock.unlink()


def store(conf):
    region = variable("REGION")

    def answer(path):
        try:
            known = json.loads(Path(conf["data"], "prices.json").read_text())
        except OSError as error:
            say(f"no prices to serve: {error.strerror}: {error.filename}")
            return 500, {"error": "no prices"}
        return 200, {**known, "region": region}

    serve(int(conf["port"]), answer)


def front(conf):
    import http.client

    def answer(path):
        item = path.removeprefix("/price/")
        try:
            asked = http.client.HTTPConnection("127.0.0.1", int(conf["store_port"]), timeout=10)
            asked.request("GET", "/prices")
            reply = asked.getresponse()
            known = json.loads(reply.read())
            asked.close()
        except OSError as error:
            say(f"the store does not answer: {error}")
            return 503, {"error": "the store does not answer"}
        if reply.status != 200:
            say(f"the store says: {known['error']}")
            return 503, {"error": "the store has a problem"}
        if item not in known["prices"]:
            return 404, {"error": f"no {item} here"}
        about = {"currency": known["currency"], "region": known["region"]}
        return 200, {"item": item, "price": known["prices"][item], **about}

    serve(int(conf["port"]), answer)


def serve(port, answer):
    import socket
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            status, said = answer(self.path)
            body = json.dumps(said).encode() + b"\n"
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *ignored):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    say(f"answering on port {port}")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])
    server.serve_forever()


if __name__ == "__main__":
    try:
        {"feed": feed, "store": store, "front": front}[sys.argv[1]](settings(sys.argv[2]))
    except OSError as error:
        say(f"{error.strerror}: {error.filename}")
        sys.exit(1)

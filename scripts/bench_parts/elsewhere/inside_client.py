"""Asks the server from inside the guest, with no tunnel between: seconds of each call, as JSON."""

import json
import sys
import time
import urllib.request

URL = "http://127.0.0.1:5000"
MOVE = "import pyautogui; import time; pyautogui.FAILSAFE = False; pyautogui.moveTo({}, 300)"


def call(path, body=None):
    data = None if body is None else json.dumps(body).encode()
    head = {"Content-Type": "application/json"}
    start = time.perf_counter()
    with urllib.request.urlopen(urllib.request.Request(URL + path, data, head)) as answer:
        answer.read()
    return time.perf_counter() - start


count = int(sys.argv[1])
looks = [call("/screenshot") for _ in range(count)]
moves = [call("/execute", {"command": ["python", "-c", MOVE.format(300 + 9 * i)], "shell": False})
         for i in range(count)]  # fmt: skip
print(json.dumps({"look": looks, "act": moves}))

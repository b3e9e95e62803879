"""OSWorld's server in the guest, as far as a step needs it: ``/execute`` and ``/screenshot``.

The published package has only the client, so these two routes are written after what the client
sends and wants back. As there, an action is a Python process of its own that imports pyautogui,
and a picture is taken by pyautogui, with the pointer pasted in, and encoded as PNG.
"""

import io
import subprocess

import pyautogui
from flask import Flask, jsonify, request, send_file
from PIL import Image
from Xlib import display
from Xlib.ext import xfixes  # noqa: F401 - a guest that has no XFixes shall fail here

pyautogui.PAUSE = 0
app = Flask(__name__)
screen = display.Display()
screen.xfixes_query_version()


@app.post("/execute")
def execute():
    wanted = request.json
    done = subprocess.run(
        wanted["command"], shell=wanted.get("shell", False), capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    return jsonify(
        status="success", output=done.stdout, error=done.stderr, returncode=done.returncode
    )


@app.get("/screenshot")
def screenshot():
    picture = pyautogui.screenshot()
    cursor = screen.xfixes_get_cursor_image(screen.screen().root)
    pixels = b"".join(pixel.to_bytes(4, "little") for pixel in cursor.cursor_image)
    pointer = Image.frombytes("RGBA", (cursor.width, cursor.height), pixels, "raw", "BGRA")
    picture.paste(pointer, (cursor.x - cursor.xhot, cursor.y - cursor.yhot), pointer)
    encoded = io.BytesIO()
    picture.save(encoded, "PNG")
    encoded.seek(0)
    return send_file(encoded, mimetype="image/png")


app.run("127.0.0.1", 5000, threaded=True)

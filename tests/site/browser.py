"""Drives Chromium through chromedriver's WebDriver protocol, with Python's standard library alone."""

import base64
import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
# The driver is on this machine, whatever proxy there is.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "ArrowLeft": "\ue012", "ArrowRight": "\ue014", "ArrowDown": "\ue015"}


def install():
    """Installs Chromium and chromedriver, if they are missing and this is root on Debian."""
    if shutil.which("chromedriver") and shutil.which("chromium"):
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise SystemExit("chromium and chromedriver are missing: install Debian's chromium and chromium-driver")
    subprocess.run(["apt-get", "update", "-qq"], check=True)
    subprocess.run(["apt-get", "install", "-yqq", "chromium", "chromium-driver"], check=True, stdout=subprocess.DEVNULL)


class Browser:
    """A headless Chromium."""

    def __init__(self):
        install()
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in self.driver.stdout:
            if "successfully on port" in line:
                self.root = "http://127.0.0.1:" + line.split("on port")[1].strip(" .\n")
                break
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-color-profile=srgb"]}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        self.session = ""
        self.session = "/session/" + self.ask("/session", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.ask("", method="DELETE")
        finally:
            self.driver.terminate()
            self.driver.wait()

    def ask(self, path, body=None, method=None):
        """What the driver answers."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.root + self.session + path, data, method=method or ("GET" if body is None else "POST"))
        request.add_header("Content-Type", "application/json")
        try:
            with OPENER.open(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"].splitlines()[0]) from None

    def devtools(self, command, **parameters):
        return self.ask("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def open(self, address):
        self.ask("/url", {"url": address})

    def run(self, script, *arguments):
        """What a function's body returns."""
        return self.ask("/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script, what, seconds=10):
        """Waits until an expression holds; returns its value."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = self.run("return " + script)
            if found:
                return found
            time.sleep(0.02)
        raise AssertionError(f"not in {seconds} s: {what} ({script})")

    def press(self, *keys):
        """Presses keys, one after the other."""
        actions = [{"type": kind, "value": KEYS.get(key, key)} for key in keys for kind in ("keyDown", "keyUp")]
        self.ask("/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def pointer(self, x, y, *acts):
        """Moves the pointer to a place of the window, then does what is named."""
        actions = [{"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y), "origin": "viewport"}]
        for act in acts:
            move = {"type": "pointerMove", "duration": 50, "x": act[0], "y": act[1], "origin": "viewport"} if isinstance(act, tuple) else {"type": act, "button": 0}
            actions.append(move)
        self.ask("/actions", {"actions": [{"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": actions}]})

    def click(self, x, y):
        self.pointer(x, y, "pointerDown", "pointerUp")

    def size(self, width, height=900):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def theme(self, name):
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def picture(self, path):
        path.write_bytes(base64.b64decode(self.ask("/screenshot")))

    def complaints(self):
        """What the console holds of warnings and errors since it was asked for last."""
        return [entry["message"] for entry in self.ask("/se/log", {"type": "browser"}) if entry["level"] in ("SEVERE", "WARNING")]

"""A real browser for tests: Chromium shows pages and is asked over a pipe what became of them."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys

PATIENCE = 60  # seconds
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
# Chromium listens on file descriptor 3 and answers on 4.
_START = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4);"
    " os.execvp(sys.argv[3], sys.argv[3:])"
)


def find_browser():
    """The path of a browser, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """Chromium without a window, spoken to in the DevTools protocol.

    Args:
        path: of the program.
        profile: an empty folder for what it writes.
    """

    def __init__(self, path, profile):
        there, self._write = os.pipe()
        self._read, back = os.pipe()
        # Above 3 and 4, so that neither is overwritten before it is copied.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (there, back)]
        words = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
        words += [f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, *map(str, ends), path, *words],
            pass_fds=ends,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (there, back, *ends):
            os.close(end)
        self._number, self._buffer, self._session = 0, b"", None
        self.complaints = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)

    def open(self, uri, width, height=900):
        """Show a page in a window of that size, and wait until it is loaded."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self._call("Page.navigate", url=uri)
        while self._receive().get("method") != "Page.loadEventFired":
            pass

    def ask(self, expression):
        """The value of a JavaScript expression."""
        answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def screenshot(self):
        """The whole page as PNG."""
        answer = self._call("Page.captureScreenshot", captureBeyondViewport=True)
        return base64.b64decode(answer["data"])

    def _call(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while (answer := self._receive()).get("id") != self._number:
            pass
        assert "error" not in answer, answer
        return answer["result"]

    def _receive(self):
        while b"\0" not in self._buffer:
            assert select.select([self._read], [], [], PATIENCE)[0], "the browser is silent"
            part = os.read(self._read, 1 << 20)
            assert part, "the browser ended"
            self._buffer += part
        text, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(text)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, method, parameters):
        if method == "Runtime.exceptionThrown":
            self.complaints.append(parameters["exceptionDetails"]["text"])
        elif method == "Log.entryAdded":
            self.complaints.append(parameters["entry"]["text"])
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(str(parameters["args"]))

"""Downloads against a real server on this machine."""

import hashlib
import http.server
import threading

import pytest

from divaug.lab.datasets._download import RemoteFile, fetch, verify
from divaug.lab.datasets._progress import console_progress
from tests.dataset_files import checksum

CONTENT = bytes(range(256)) * 10_000


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        status, length, body = self.server.answers.get(self.path, (404, 0, b""))
        self.send_response(status)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()
        self.server.asked.append(self.path)
        if body is None:
            self.server.release.wait(10)
            return
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        server.answers, server.asked, server.release = {}, [], threading.Event()
        server.answers["/file"] = (200, len(CONTENT), CONTENT)
        server.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.release.set()
        server.shutdown()
        thread.join()


def _remote(server, path="/file", **changes) -> RemoteFile:
    fields = {"name": "file.bin", "url": server.url + path, "checksums": (checksum(CONTENT),)}
    return RemoteFile(**{**fields, **changes})


@pytest.mark.parametrize("algorithm", ["md5", "sha256"])
def test_download_saves_the_bytes_and_asks_once(server, tmp_path, algorithm):
    remote = _remote(server, checksums=(checksum(CONTENT, algorithm),))
    calls = []
    path = fetch(remote, tmp_path / "new", progress=lambda *call: calls.append(call))
    assert path.read_bytes() == CONTENT
    assert fetch(remote, tmp_path / "new") == path
    assert server.asked == ["/file"]
    assert list((tmp_path / "new").iterdir()) == [path]
    done = [d for d, _ in calls]
    assert done == sorted(done)
    assert (done[0], done[-1]) == (0, len(CONTENT))
    assert {total for _, total in calls} == {len(CONTENT)}


def test_a_download_without_announced_length_works(server, tmp_path, capsys):
    server.answers["/file"] = (200, None, CONTENT)
    assert fetch(_remote(server), tmp_path).read_bytes() == CONTENT
    assert capsys.readouterr().err.startswith("file.bin: 0.0 MB")


def test_new_file_is_as_readable_as_any_other(server, tmp_path):
    (tmp_path / "other").write_bytes(b"")
    path = fetch(_remote(server), tmp_path)
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode


FAILURES = {
    "wrong bytes": ((200, 5, b"wrong"), {}, ValueError, "sent is damaged"),
    "not found": ((404, 0, b""), {}, FileNotFoundError, "answered 404"),
    "server error": ((500, 0, b""), {}, FileNotFoundError, "answered 500"),
    "cut off": ((200, len(CONTENT), CONTENT[:1000]), {}, FileNotFoundError, "1000|Incomplete"),
    "too large": ((200, len(CONTENT), CONTENT), {"max_bytes": 99}, ValueError, "over 99 bytes"),
    "silent": ((200, 10, None), {}, FileNotFoundError, "timed out"),
}


@pytest.mark.parametrize("case", FAILURES)
def test_failure_is_named_and_leaves_nothing(server, tmp_path, case):
    answer, changes, error_type, message = FAILURES[case]
    server.answers["/file"] = answer
    with pytest.raises(error_type, match=message) as error:
        fetch(_remote(server, **changes), tmp_path, timeout=0.5)
    assert server.url in str(error.value)
    if error_type is FileNotFoundError:
        assert f"put it into {tmp_path}" in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_offline_names_file_address_and_remedy(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    remote = RemoteFile("file.bin", "http://127.0.0.1:9/file", (checksum(CONTENT),))
    with pytest.raises(FileNotFoundError) as error:
        fetch(remote, tmp_path, progress=lambda *_: None)
    for part in (str(tmp_path / "file.bin"), remote.url, f"put it into {tmp_path}"):
        assert part in str(error.value)


def test_download_can_be_forbidden(server, tmp_path):
    with pytest.raises(FileNotFoundError, match="missing; get http"):
        fetch(_remote(server), tmp_path, download=False)
    assert server.asked == []


def test_other_schemes_are_refused(tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(CONTENT)
    remote = RemoteFile("file.bin", secret.as_uri(), (checksum(CONTENT),))
    with pytest.raises(ValueError, match="http"):
        fetch(remote, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_damaged_file_on_the_disk_is_named_and_kept(server, tmp_path):
    path = tmp_path / "file.bin"
    path.write_bytes(CONTENT[:-1])
    with pytest.raises(ValueError, match="delete it") as error:
        fetch(_remote(server), tmp_path)
    assert str(path) in str(error.value)
    assert path.read_bytes() == CONTENT[:-1]


def test_further_checksums_hold_for_files_on_the_disk_only(server, tmp_path):
    repacked = b"the same, packed differently"
    both = (checksum(CONTENT), checksum(repacked))
    (tmp_path / "file.bin").write_bytes(repacked)
    assert fetch(_remote(server, checksums=both), tmp_path).read_bytes() == repacked
    server.answers["/file"] = (200, len(repacked), repacked)
    with pytest.raises(ValueError, match="sent is damaged"):
        fetch(_remote(server, checksums=both), tmp_path / "new")


def test_an_interrupted_download_leaves_nothing(server, tmp_path):
    def interrupt(done, total):
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(_remote(server), tmp_path, progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_verify_computes_what_hashlib_does(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    verify(path, (f"sha256:{hashlib.sha256(CONTENT).hexdigest()}",))
    with pytest.raises(ValueError, match=hashlib.md5(CONTENT).hexdigest()):
        verify(path, ("md5:" + "0" * 32,))


def test_plain_progress_says_each_tenth_once(capsys):
    with console_progress("thing") as report:
        for done in range(0, 1_000_001, 1000):
            report(done, 1_000_000)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 11
    assert (lines[0], lines[-1]) == ("thing: 0.0 of 1.0 MB", "thing: 1.0 of 1.0 MB")


def test_progress_on_a_terminal_is_a_bar(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with console_progress("thing") as report:
        report(0, 2_000_000)
        report(2_000_000, 2_000_000)
    assert "2.0/2.0 MB" in capsys.readouterr().err

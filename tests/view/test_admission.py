"""Who is answered: the table of the rule, by Host, Origin and token."""

import socket
import threading
import urllib.error
import urllib.request

import pytest

from live.chromium import LONGEST_S, Chromium
from studies.small_arm import small_arm
from veridyn.errors import DataError
from veridyn.view.admission import Admission, is_loopback, same_token
from veridyn.view.live import LiveView, posable_tree

OPEN, CLOSED = Admission(), Admission("a-word")


@pytest.mark.parametrize(
    ("admission", "hosts", "origins", "tokens", "status"),
    [
        (OPEN, ["127.0.0.1:80"], [], [], None),
        (OPEN, ["localhost:8080"], ["http://localhost:8080"], [], None),
        (OPEN, ["LOCALHOST"], ["http://localhost"], [], None),
        (OPEN, ["[::1]:8080"], ["http://[::1]:8080"], [], None),
        (OPEN, ["evil.example:8080"], ["http://evil.example:8080"], [], 403),  # a name that leads here
        (OPEN, ["localhost.evil.example"], [], [], 403),
        (OPEN, ["127.0.0.1:8080"], ["http://evil.example"], [], 403),
        (OPEN, ["127.0.0.1:8080"], ["http://127.0.0.1:9000"], [], 403),  # another program of this computer
        (OPEN, ["127.0.0.1:8080"], ["http://localhost:8080"], [], 403),
        (OPEN, ["127.0.0.1:8080"], ["null"], [], 403),  # a page in a sandbox, or of a file
        (OPEN, ["127.0.0.1"], ["http://127.0.0.1", "http://evil.example"], [], 403),
        (OPEN, [], [], [], 400),
        (OPEN, ["127.0.0.1", "evil.example"], [], [], 400),
        (OPEN, ["[::1"], [], [], 400),
        (OPEN, ["user@127.0.0.1"], [], [], 400),
        (OPEN, ["127.0.0.1;script-src *"], [], [], 400),
        (CLOSED, ["127.0.0.1"], [], [], 403),
        (CLOSED, ["127.0.0.1"], [], ["a-wor", "é", ""], 403),
        (CLOSED, ["robot.local:8080"], ["http://robot.local:8080"], ["a-word"], None),
        (CLOSED, ["robot.local:8080"], ["https://robot.local:8080"], ["", "a-word"], None),  # behind a proxy
        (CLOSED, ["robot.local:8080"], ["http://evil.example"], ["a-word"], 403),
        (CLOSED, ["[::1"], [], ["a-word"], 400),
    ],
)
def test_who_is_answered(admission, hosts, origins, tokens, status):
    refused = admission.refusal(hosts, origins, tokens)
    assert status == (None if refused is None else int(refused.status))


def test_other_hosts_get_a_token_of_their_own():
    assert Admission.at("127.0.0.1").token == "" and Admission.at("127.0.0.1", "mine").token == "mine"
    drawn = [Admission.at("0.0.0.0").token for _ in range(3)]
    assert len(set(drawn)) == 3 and min(map(len, drawn)) >= 20
    assert Admission("a b&c").address("::", 80) == "http://[::]:80/?token=a%20b%26c"
    assert same_token("é", "é") and not same_token("é", "e")


def test_addresses_of_this_computer():
    names = ("127.0.0.1", "127.1.2.3", "::1", "localhost", "0.0.0.0", "example.org", "127.0.0.1.example.org", "")
    assert [is_loopback(h) for h in names] == [True] * 4 + [False] * 4


viser = pytest.importorskip("viser", reason="viser (the extra 'view') serves live views")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def view():
    made = LiveView(posable_tree(small_arm()), free_port())
    yield made
    made.stop()


@pytest.fixture(scope="module")
def shared():
    """A view for other hosts, with a token."""
    made = LiveView(posable_tree(small_arm()), free_port(), "0.0.0.0", token="a word")
    yield made
    made.stop()


def handshake(port: int, path: str = "/", **headers: str) -> tuple[int, bytes]:
    """The status with which a WebSocket is answered, and the first bytes that come through it."""
    sent = {
        "Host": f"127.0.0.1:{port}",
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Protocol": f"viser-v{viser.__version__}",
    } | {name.replace("_", "-"): value for name, value in headers.items()}
    with socket.create_connection(("127.0.0.1", port), timeout=10.0) as out:
        out.sendall("\r\n".join([f"GET {path} HTTP/1.1", *(f"{k}: {v}" for k, v in sent.items()), "", ""]).encode())
        with out.makefile("rb") as answer:
            status = int(answer.readline().split()[1])
            while answer.readline().strip():
                pass
            return status, answer.read(1) if status == 101 else b""


def test_a_websocket_of_another_page_or_by_another_name_is_refused(view):
    port = view.server.get_port()
    assert handshake(port) == (101, b"\x82")  # a message with the scene begins
    assert handshake(port, Origin=f"http://127.0.0.1:{port}")[0] == 101
    assert handshake(port, Origin="http://evil.example")[0] == 403
    assert handshake(port, Origin=f"http://localhost:{port}")[0] == 403
    assert handshake(port, Host=f"evil.example:{port}")[0] == 403
    assert handshake(port, Host=f"evil.example:{port}", Origin=f"http://evil.example:{port}")[0] == 403
    assert handshake(port, Host="[::1")[0] == 400
    assert handshake(port, "http://[")[0] == 400


def test_the_page_is_not_for_other_names_and_cannot_be_framed(view):
    with urllib.request.urlopen(view.address, timeout=10) as page:
        assert page.headers["X-Frame-Options"] == "DENY"
        assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]
        assert page.headers["Set-Cookie"] is None
    request = urllib.request.Request(view.address, headers={"Host": "evil.example"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=10)
    with refused.value as answer:
        assert answer.code == 403 and b"this computer alone" in answer.read()


def test_other_hosts_need_the_token_for_the_page_and_the_websocket(shared):
    port = shared.server.get_port()
    assert shared.address == f"http://0.0.0.0:{port}/?token=a%20word"
    assert handshake(port)[0] == 403 and handshake(port, "/?token=a%20wor")[0] == 403
    assert handshake(port, "/?token=a%20word") == (101, b"\x82")
    assert handshake(port, "/?token=a%20word", Origin="http://evil.example")[0] == 403
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10)
    refused.value.close()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/?token=a%20word", timeout=10) as page:
        cookie, settings = page.headers["Set-Cookie"].split(";", 1)
        assert "HttpOnly" in settings and "SameSite=Strict" in settings
    assert handshake(port, Cookie=cookie) == (101, b"\x82")
    assert handshake(port, Cookie=f"{cookie}x")[0] == 403


def test_without_a_token_of_the_user_one_is_drawn_for_other_hosts():
    made = LiveView(posable_tree(small_arm()), free_port(), "0.0.0.0")
    try:
        assert len(made.address.partition("?token=")[2]) >= 20
    finally:
        made.stop()


@pytest.mark.slow  # the browser draws the scene without a graphics card
def test_in_a_browser_the_page_shows_the_machine_with_and_without_a_token(view, shared, tmp_path):
    browser = Chromium(tmp_path)
    try:
        for made in (view, shared):
            connected = threading.Event()
            made.server.on_client_connect(lambda _, connected=connected: connected.set())
            browser.open(made.address.replace("0.0.0.0", "127.0.0.1") + ("" if "?" in made.address else "/"))
            assert connected.wait(LONGEST_S), made.address
    finally:
        browser.close()


def test_a_viser_that_starts_its_server_in_another_way_is_stopped_and_refused(monkeypatch):
    import websockets.asyncio.server as library

    class Other(viser.ViserServer):
        """Calls `serve` as it was before."""

        def __init__(self, **settings) -> None:
            library.serve, guarded = serve, library.serve
            super().__init__(**settings)
            library.serve = guarded

    serve, port = library.serve, free_port()
    monkeypatch.setattr(viser, "ViserServer", Other)
    with pytest.raises(DataError, match="this version of viser cannot be guarded"):
        LiveView(posable_tree(small_arm()), port)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=10.0).close()
    assert library.serve is serve

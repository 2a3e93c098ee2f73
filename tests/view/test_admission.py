"""Who is answered: the table of the rule, by Host, Origin and token."""

import pytest

from veridyn.view.admission import Admission, is_loopback, same_token

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

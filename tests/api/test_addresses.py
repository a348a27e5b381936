"""Addresses: who asks, and which proxies are believed."""

import pytest

from searchlab.api.http.addresses import Proxies, group_of
from searchlab.errors import InputError


@pytest.mark.parametrize(
    ("address", "group"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("testclient", "testclient"),
        ("", ""),
    ],
)
def test_addresses_that_one_client_can_choose_among_count_as_one(address, group):
    assert group_of(address) == group


def client(proxies, peer, *values):
    headers = [(b"host", b"a"), *((b"x-forwarded-for", value) for value in values)]
    return proxies.client_of({"client": (peer, 1), "headers": headers})


def test_a_header_is_believed_only_from_a_trusted_proxy():
    proxies = Proxies("X-Forwarded-For", ["10.0.0.0/8", "::1"])
    assert client(proxies, "10.1.2.3", b"203.0.113.7") == "203.0.113.7"
    assert client(proxies, "::ffff:10.1.2.3", b"203.0.113.7") == "203.0.113.7"
    assert client(proxies, "::1", b"2001:db8::7") == "2001:db8::/64"
    assert client(proxies, "203.0.113.9", b"203.0.113.7") == "203.0.113.9"
    assert client(Proxies("", ["10.0.0.0/8"]), "10.1.2.3", b"203.0.113.7") == "10.1.2.3"


def test_what_the_client_wrote_before_the_proxy_does_not_count():
    proxies = Proxies("x-forwarded-for", ["10.0.0.0/8"])
    assert client(proxies, "10.0.0.1", b"198.51.100.1, 203.0.113.7") == "203.0.113.7"
    assert client(proxies, "10.0.0.1", b"198.51.100.1", b"203.0.113.7, 10.9.9.9") == "203.0.113.7"
    assert client(proxies, "10.0.0.1", b"203.0.113.7:4711") == "203.0.113.7"
    assert client(proxies, "10.0.0.1", b"[2001:db8::7]:4711") == "2001:db8::/64"
    for nobody in (b"", b" , ", b"10.0.0.2"):
        assert client(proxies, "10.0.0.1", nobody) == "10.0.0.1"


def test_a_malformed_network_is_refused():
    with pytest.raises(InputError, match=r"an address or a network, got '10\.0\.0\.0/99'"):
        Proxies("X-Forwarded-For", ["10.0.0.0/99"])

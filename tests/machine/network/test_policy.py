"""What a list of hosts allows."""

from __future__ import annotations

import pytest

from cua_gym.machine.network.policy import Policy, reachable


@pytest.mark.parametrize(
    ("name", "port", "allowed"),
    [
        ("example.org", 443, True),
        ("EXAMPLE.org.", 80, True),
        ("example.org", 22, False),
        ("www.example.org", 443, False),
        ("notexample.org", 443, False),
        ("example.org.evil.net", 443, False),
        ("a.b.example.net", 8443, True),
        ("example.net", 8443, False),
        ("a.example.net", 443, False),
        ("localhost", 80, False),
        ("127.0.0.1", 80, False),
        ("", 80, False),
    ],
)
def test_only_what_is_named_is_allowed(name: str, port: int, allowed: bool) -> None:
    """Whole labels, any case; a name without a port has those of the web."""
    policy = Policy.of(("Example.org", "*.example.net:8443"))
    assert policy.allows(name, port) is allowed


def test_ports_of_one_host_add_up() -> None:
    """Each entry adds; what is listened to is all of them."""
    policy = Policy.of(("example.org", "example.org:8080", "*.example.org:22"))
    assert policy.allows("example.org", 80)
    assert policy.allows("example.org", 8080)
    assert policy.listened == [22, 80, 443, 8080]
    assert policy.names == ["example.org"]


def test_other_alphabets_are_compared_as_the_wire_has_them() -> None:
    """The name that a resolver is asked for."""
    assert Policy.of(("bücher.example",)).allows("xn--bcher-kva.example")


@pytest.mark.parametrize(
    "entry",
    [
        "", "http://example.org", "example.org/path", "example.org:0", "example.org:99999", "*",
        "*.org", "a b", "10.0.0.1", "-a.example", "*.*.example.org", "example..org", "ü" * 80,
    ],
)  # fmt: skip
def test_what_is_no_host_is_refused(entry: str) -> None:
    """The message shows it and what to write."""
    with pytest.raises(ValueError, match=r"host|port"):
        Policy.of((entry,))


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("93.184.216.34", True),
        ("10.1.2.3", True),
        ("2606:2800:220:1::1", True),
        ("127.0.0.1", False),
        ("127.9.9.9", False),
        ("0.0.0.0", False),
        ("169.254.169.254", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::1", False),
        ("::", False),
        ("fe80::1%eth0", False),
        ("::ffff:127.0.0.1", False),
        ("2002:7f00:1::", False),
        ("64:ff9b::7f00:1", False),
        ("nonsense", False),
    ],
)
def test_no_name_stands_for_the_host_itself(address: str, allowed: bool) -> None:
    """However its address is written."""
    assert reachable(address) is allowed

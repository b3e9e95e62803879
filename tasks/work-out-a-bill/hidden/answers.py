"""What is to be paid, and what comes out with each of the tempting mistakes."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import Any


def answers(params: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """In euros with cents, half a cent up."""
    return {
        name: float(Decimal(amount).quantize(Decimal("0.01"), ROUND_HALF_UP))
        for name, amount in params["amounts"].items()
    }

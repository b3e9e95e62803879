"""The list as it must be, and as the boards alone would have it."""

from __future__ import annotations

from typing import Any


def answers(params: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """Rows with the header; the tempting ones leave out a change, or all."""
    about = {order: (who, count) for order, who, count in params["table"]}
    board = [row for rows in params["boards"] for row in rows]
    (moved, late), (turned, gate) = params["moved"], params["turned"]

    def listed(*, move: bool, turn: bool, cancel: bool, sort: bool = True) -> list[list[Any]]:
        rows = [
            [
                late if move and order == moved else clock,
                gate if turn and order == turned else door,
                order,
                *about[order],
            ]
            for clock, door, order in board
            if not (cancel and order == params["cancelled"])
        ]
        head = ["time", "gate", "order", "customer", params["goods"]]
        return [head, *(sorted(rows) if sort else rows)]

    right = listed(move=True, turn=True, cancel=True)
    tempting = [
        listed(move=False, turn=False, cancel=False),
        listed(move=False, turn=True, cancel=True),
        listed(move=True, turn=False, cancel=True),
        listed(move=True, turn=True, cancel=False),
    ]
    return {"rows": right, "orders": [row[2] for row in right[1:]], "tempting": tempting}

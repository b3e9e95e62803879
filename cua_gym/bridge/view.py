from __future__ import annotations

from collections.abc import Sequence

from starlette.routing import BaseRoute

from cua_gym.bridge.session import Session


def routes(session: Session) -> Sequence[BaseRoute]:
    return ()

"""The folder as it must be."""

from __future__ import annotations

from typing import Any


def answers(params: dict[str, Any], inputs: dict[str, bytes]) -> dict[str, Any]:
    """All files below Project with their contents."""
    topic = params["topic"]
    return {
        "files": {
            f"Archive/{params['moved']}": f"Minutes of the meeting about {topic}.\n",
            "Archive/kept.txt": "Already here.\n",
            params["new"]: f"A first draft about {topic}.\n",
            params["other"]: f"Figures for {topic}.\n",
        }
    }

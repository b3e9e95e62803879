"""For the authors of ``vary.py``: files whose bytes depend on nothing but their content.

Text documents are in `cua_gym.task.documents`.
"""

from __future__ import annotations

import datetime
import io
import re
import zipfile
from collections.abc import Mapping
from typing import Any

__all__ = ["package_bytes", "workbook_bytes"]

_EPOCH = datetime.datetime(2024, 1, 1)


def workbook_bytes(workbook: Any) -> bytes:
    """An openpyxl workbook as xlsx, without the time at which it was saved.

    The same seed must give the same bytes, and openpyxl writes the clock in two places.
    """
    saved = io.BytesIO()
    workbook.properties.created = _EPOCH
    workbook.save(saved)
    with zipfile.ZipFile(saved) as source:
        parts = {name: source.read(name) for name in source.namelist()}
    parts["docProps/core.xml"] = re.sub(
        rb"(<dcterms:modified[^>]*>)[^<]*",
        rb"\g<1>2024-01-01T00:00:00Z",
        parts["docProps/core.xml"],
    )
    return package_bytes(parts)


def package_bytes(parts: Mapping[str, bytes | str]) -> bytes:
    """A zip of these members in this order, without the time; a ``mimetype`` is not compressed.

    Text is UTF-8.
    """
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as target:
        for name, data in parts.items():
            member = zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0))
            plain = name == "mimetype"
            member.compress_type = zipfile.ZIP_STORED if plain else zipfile.ZIP_DEFLATED
            target.writestr(member, data)
    return packed.getvalue()

"""For the authors of ``vary.py``: files whose bytes depend on nothing but their content."""

from __future__ import annotations

import datetime
import io
import re
import zipfile
from typing import Any

__all__ = ["workbook_bytes"]

_EPOCH = datetime.datetime(2024, 1, 1)


def workbook_bytes(workbook: Any) -> bytes:
    """An openpyxl workbook as xlsx, without the time at which it was saved.

    The same seed must give the same bytes, and openpyxl writes the clock in two places.
    """
    saved = io.BytesIO()
    workbook.properties.created = _EPOCH
    workbook.save(saved)
    stable = io.BytesIO()
    with zipfile.ZipFile(saved) as source, zipfile.ZipFile(stable, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name == "docProps/core.xml":
                data = re.sub(
                    rb"(<dcterms:modified[^>]*>)[^<]*", rb"\g<1>2024-01-01T00:00:00Z", data
                )
            member = zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0))
            member.compress_type = zipfile.ZIP_DEFLATED
            target.writestr(member, data)
    return stable.getvalue()

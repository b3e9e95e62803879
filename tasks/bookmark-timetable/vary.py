"""A small site with the timetables of ferries: lines, and for each line eight timetables."""

from __future__ import annotations

import datetime
import json
import random
from typing import Any

from cua_gym.task.authoring import package_bytes

_COMPANIES = ["Sound Ferries", "Bay Line", "Archipelago Boats", "Fjord Shuttle"]
_PLACES = ["Harnby", "Skerry", "Oxholm", "Langsund", "Vardy", "Elmness", "Torkil", "Saltey"]
_NAMES = ["To the island", "Trip with Aino", "Visit", "Back by boat"]
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><link rel="icon" href="data:,">
<style>body {{ font: 16px sans-serif; margin: 1.5em 3em }} li {{ margin: .4em 0 }}</style></head>
<body><h1>{title}</h1>
{body}
</body></html>
"""


def vary(rng: random.Random) -> dict[str, Any]:
    """The lines with their pages; the journey, and what pages it could be confused with."""
    places = rng.sample(_PLACES, 8)
    lines = [places[:2], places[2:4], places[4:6], places[6:]]
    pages = iter(rng.sample(range(1000, 9999), 40))
    tables = {
        f"{line}{way}{season}{days}": f"t{next(pages)}.html"
        for line in range(4)
        for way in range(2)
        for season in range(2)
        for days in range(2)
    }
    # Summer ends on a Saturday; the journey is a Sunday or weekday near to it.
    last = datetime.date(2025, 9, 6) + datetime.timedelta(weeks=rng.randint(0, 5))
    season, days = rng.randint(0, 1), rng.randint(0, 1)
    weeks = rng.randint(1, 2) if season else -rng.randint(1, 2)
    day = last + datetime.timedelta(weeks=weeks, days=1 if days else rng.randint(2, 5))
    line, way = rng.randint(0, 3), rng.randint(0, 1)
    start, end = lines[line] if way == 0 else lines[line][::-1]
    port = rng.randint(8100, 8900)

    def url(way: int, season: int, days: int) -> str:
        return f"http://127.0.0.1:{port}/{tables[f'{line}{way}{season}{days}']}"

    return {
        "company": rng.choice(_COMPANIES),
        "lines": lines,
        "tables": tables,
        "line_pages": [f"line{next(pages)}.html" for _ in lines],
        "line": line,
        "last": last.isoformat(),
        "times": rng.randrange(2**31),
        "from": start,
        "to": end,
        "day": f"{day:%A}, {day.day} {day:%B} {day.year}",
        "name": rng.choice(_NAMES),
        "port": port,
        "url": url(way, season, days),
        "other_season": url(way, 1 - season, days),
        "other_days": url(way, season, 1 - days),
        "other_way": url(1 - way, season, days),
        "saved": rng.sample(["News", "Weather", "Library", "Recipes", "Choir"], 2),
    }


def inputs(params: dict[str, Any]) -> dict[str, bytes]:
    """The site, and the bookmarks that are there already."""
    urls = [f"http://127.0.0.1:{params['port']}/{name.lower()}" for name in params["saved"]]
    bar = [
        {"id": str(n), "name": name, "type": "url", "url": url}
        for n, (name, url) in enumerate(zip(params["saved"], urls, strict=True), 4)
    ]
    folders = [("bookmark_bar", "Bookmarks bar"), ("other", "Other bookmarks")]
    folders += [("synced", "Mobile bookmarks")]
    roots: dict[str, dict[str, Any]] = {
        key: {"id": str(n), "name": name, "type": "folder", "children": []}
        for n, (key, name) in enumerate(folders, 1)
    }
    # Something was bookmarked there before.
    roots["bookmark_bar"] |= {"children": bar, "date_modified": "13390000000000000"}
    return {
        "site.zip": package_bytes(_site(params)),
        "bookmarks": json.dumps({"checksum": "", "roots": roots, "version": 1}).encode(),
    }


def _site(params: dict[str, Any]) -> dict[str, str]:
    rng = random.Random(params["times"])
    company = params["company"]
    last = datetime.date.fromisoformat(params["last"])
    first = last + datetime.timedelta(days=1)
    links = [
        f'<li><a href="{page}">{a} and {b}</a></li>'
        for page, (a, b) in zip(params["line_pages"], params["lines"], strict=True)
    ]
    site = {
        "index.html": _page(company, f"<p>Our ferries sail between</p><ul>{''.join(links)}</ul>")
    }
    for page, (a, b) in zip(params["line_pages"], params["lines"], strict=True):
        line = params["line_pages"].index(page)
        items = []
        for way, (start, end) in enumerate(((a, b), (b, a))):
            for season, about in enumerate(("summer", "winter")):
                for days, which in enumerate(("Monday to Saturday", "Sundays")):
                    name = params["tables"][f"{line}{way}{season}{days}"]
                    title = f"{start} to {end}, {about}, {which}"
                    items.append(f'<li><a href="{name}">{title}</a></li>')
                    hours = sorted(rng.sample(range(6, 22), 6 - season - days))
                    rows = "".join(f"<li>{hour:02}:{rng.randint(0, 59):02}</li>" for hour in hours)
                    site[name] = _page(title, f"<p>Departures from {start}</p><ul>{rows}</ul>")
        seasons = (
            f"<p>Summer timetables hold up to {last.day} {last:%B} 2025, winter timetables from "
            f"{first.day} {first:%B} 2025.</p>"
        )
        site[page] = _page(f"{a} and {b}", f"{seasons}<ul>{''.join(items)}</ul>")
    return site


def _page(title: str, body: str) -> str:
    return _PAGE.format(title=title, body=body)

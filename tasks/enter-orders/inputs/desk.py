#!/usr/bin/python3 -I
"""A small order desk for the browser: ``desk.py DATABASE PORT DAY``.

Customers and orders can be looked up, orders entered, open ones cancelled, shipped ones taken back.
New orders are of the given DAY. It prints each page that it shows.
"""

import contextlib
import re
import sqlite3
import sys
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

DATABASE, PORT, DAY = sys.argv[1], int(sys.argv[2]), sys.argv[3]
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title} - Order desk</title>
<link rel="icon" href="data:,">
<style>body {{ font: 16px sans-serif; margin: 1.5em 3em }} td, th {{ padding: .3em 1em .3em 0;
text-align: left }} label {{ display: block; margin: .8em 0 }} input, button {{ font: inherit }}
nav a {{ margin-right: 1.5em }}</style></head>
<body><nav><a href="/">Search</a><a href="/orders/new">New order</a>
<a href="/articles">Articles</a></nav>
<h1>{title}</h1>
{body}
</body></html>
"""
SEARCH = """<form action="/search"><label>Name, town or number of a customer, or number of an order
<input name="q" size="30" autofocus></label><button>Search</button></form>"""
FORM = """<form method="post" action="/orders">
<label>Customer number <input name="customer" value="{customer}" autofocus></label>
<label>Article number <input name="article"></label>
<label>Quantity <input name="quantity"></label>
<label>Day of delivery, such as 2025-01-31 <input name="delivery"></label>
<label>Reference <input name="reference"></label>
<button>Save order</button></form>"""


class NotSo(Exception):
    """What was asked for cannot be shown or done: a title, and why."""


def money(cents):
    return f"{cents // 100}.{cents % 100:02} EUR"


def table(head, rows):
    """Rows of cells; one that begins with ``<`` is HTML already."""

    def row(cells, tag):
        texts = [str(cell) for cell in cells]
        texts = [text if text.startswith("<") else escape(text) for text in texts]
        return "<tr>" + "".join(f"<{tag}>{text}</{tag}>" for text in texts) + "</tr>\n"

    return f"<table>\n{row(head, 'th')}{''.join(row(cells, 'td') for cells in rows)}</table>"


def link(to, text):
    return f'<a href="{escape(to)}">{escape(str(text))}</a>'


def one(base, query, values, what):
    row = base.execute(query, values).fetchone()
    if row is None:
        raise NotSo("Not found", f"There is no such {what}.")
    return row


def search(base, words):
    """The customers that fit, or where to go on when it is the number of an order."""
    words = words.strip()
    if base.execute("SELECT 1 FROM orders WHERE number = ?", (words,)).fetchone():
        return f"/orders/{int(words)}"
    like = f"%{words}%"
    rows = base.execute(
        "SELECT * FROM customers WHERE name LIKE ? OR town LIKE ? OR number = ? ORDER BY number",
        (like, like, words),
    ).fetchall()
    found = [[link(f"/customers/{row[0]}", row[0]), *row[1:]] for row in rows]
    return f"Customers like {words}", SEARCH + table(["Number", "Name", "Street", "Town"], found)


def customer(base, number):
    _, name, street, town = one(
        base, "SELECT * FROM customers WHERE number = ?", (number,), "customer"
    )
    rows = base.execute(
        "SELECT o.number, o.placed, o.quantity || ' x ' || a.name, o.reference, o.state "
        "FROM orders o JOIN articles a ON a.number = o.article WHERE customer = ? ORDER BY 1",
        (number,),
    ).fetchall()
    orders = [[link(f"/orders/{row[0]}", row[0]), *row[1:]] for row in rows]
    body = f"<p>{escape(name)}<br>{escape(street)}<br>{escape(town)}</p>"
    body += table(["Order", "Placed", "Article", "Reference", "State"], orders)
    more = link(f"/orders/new?customer={number}", "New order for this customer")
    return f"Customer {number}", f"{body}<p>{more}</p>"


def new_order(fields):
    """The form for an order, empty but for a customer; and what was saved before it."""
    body = FORM.format(customer=escape(fields.get("customer", "")))
    saved = fields.get("saved")
    if saved is None:
        return "New order", body
    return f"Saved order {saved}", f"<p>{link(f'/orders/{saved}', f'Order {saved}')}</p>{body}"


def order(base, number):
    of, article, quantity, placed, delivery, reference, state, name, cents = one(
        base,
        "SELECT o.customer, o.article, quantity, placed, delivery, reference, state, a.name, cents "
        "FROM orders o JOIN articles a ON a.number = o.article WHERE o.number = ?",
        (number,),
        "order",
    )
    who = one(base, "SELECT name, town FROM customers WHERE number = ?", (of,), "customer")
    body = table(
        ["State", state],
        [
            ["Customer", link(f"/customers/{of}", f"{of} {', '.join(who)}")],
            ["Placed", placed],
            ["Article", f"{article} {name}"],
            ["Quantity", quantity],
            ["Price of one", money(cents)],
            ["Total", money(cents * quantity)],
            ["Day of delivery", delivery],
            ["Reference", reference],
        ],
    )
    rows = base.execute(
        "SELECT paid, cents FROM payments WHERE ordered = ? ORDER BY number", (number,)
    ).fetchall()
    body += "<h2>Payments</h2>"
    body += table(["Day", "Paid"], [[day, money(paid)] for day, paid in rows]) if rows else "None"
    if state == "open":
        body += button(number, "cancel", "Cancel this order")
    elif state == "shipped":
        body += "<p>This order is shipped, and shipped orders cannot be cancelled.</p>"
        body += button(number, "return", "Take this order back")
    return f"Order {number}", body


def button(number, action, text):
    where = f"/orders/{number}/{action}"
    return f'<form method="post" action="{where}"><button>{text}</button></form>'


def articles(base):
    rows = base.execute("SELECT * FROM articles ORDER BY name").fetchall()
    shown = [[number, name, money(cents)] for number, name, cents in rows]
    return "Articles", table(["Number", "Name", "Price"], shown)


def save(base, fields):
    """A new order; its number."""
    values = {
        name: fields.get(name, "").strip()
        for name in ("customer", "article", "quantity", "delivery", "reference")
    }
    if not re.fullmatch(r"[1-9][0-9]{0,3}", values["quantity"]):
        raise NotSo("Not saved", "The quantity is no whole number.")
    if not re.fullmatch(r"20[0-9]{2}-[01][0-9]-[0-3][0-9]", values["delivery"]):
        raise NotSo("Not saved", "The day of delivery is not written like 2025-01-31.")
    for name, where in (("customer", "customers"), ("article", "articles")):
        query = f"SELECT number FROM {where} WHERE number = ?"
        if base.execute(query, (values[name],)).fetchone() is None:
            raise NotSo("Not saved", f"There is no such {name}.")
    return base.execute(
        "INSERT INTO orders (customer, article, quantity, delivery, reference, placed, state) "
        "VALUES (?, ?, ?, ?, ?, ?, 'open')",
        (
            int(values["customer"]),
            values["article"],
            int(values["quantity"]),
            values["delivery"],
            values["reference"],
            DAY,
        ),
    ).lastrowid


def move(base, number, action):
    """Cancel an open order or take a shipped one back."""
    state = one(base, "SELECT state FROM orders WHERE number = ?", (number,), "order")[0]
    wanted, then = {"cancel": ("open", "cancelled"), "return": ("shipped", "taken back")}[action]
    if state != wanted:
        raise NotSo("Not done", f"Order {number} is {state}, so it stays as it is.")
    base.execute("UPDATE orders SET state = ? WHERE number = ?", (then, number))


class Desk(BaseHTTPRequestHandler):
    """One request."""

    def do_GET(self):
        self.answer(self.shown)

    def do_POST(self):
        self.answer(self.done)

    def shown(self, base, parts):
        fields = {key: values[0] for key, values in parse_qs(parts.query).items()}
        path = parts.path.strip("/")
        if path == "":
            return "Start", SEARCH
        if path == "articles":
            return articles(base)
        if path == "search":
            return search(base, fields.get("q", ""))
        if path == "orders/new":
            return new_order(fields)
        for pattern, page in ((r"customers/(\d+)", customer), (r"orders/(\d+)", order)):
            if match := re.fullmatch(pattern, path):
                return page(base, int(match[1]))
        raise NotSo("Not found", "There is no such page.")

    def done(self, base, parts):
        """Where to go on."""
        length = min(int(self.headers.get("Content-Length") or 0), 10_000)
        sent = parse_qs(self.rfile.read(length).decode())
        if parts.path == "/orders":
            saved = save(base, {key: values[0] for key, values in sent.items()})
            return f"/orders/new?saved={saved}"
        if match := re.fullmatch(r"/orders/(\d+)/(cancel|return)", parts.path):
            move(base, int(match[1]), match[2])
            return f"/orders/{int(match[1])}"
        raise NotSo("Not found", "There is no such page.")

    def answer(self, work):
        parts = urlsplit(self.path)
        with contextlib.closing(sqlite3.connect(DATABASE)) as base:
            try:
                with base:
                    result = work(base, parts)
                status = 200
            except NotSo as reason:
                title, why = reason.args
                result, status = (title, f"<p>{escape(why)}</p>"), 409
        if isinstance(result, str):
            self.send_response(303)
            self.send_header("Location", result)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        title, body = result
        data = PAGE.format(title=escape(title), body=body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(data)
        print(f"shown {parts.path}", flush=True)

    def log_message(self, *_):
        """What is printed is enough."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", PORT), Desk).serve_forever()

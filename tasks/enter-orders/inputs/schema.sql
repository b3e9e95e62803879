CREATE TABLE customers (number INTEGER PRIMARY KEY, name TEXT, street TEXT, town TEXT);
CREATE TABLE articles (number TEXT, name TEXT, cents INTEGER);
CREATE TABLE orders (
    number INTEGER PRIMARY KEY, customer INTEGER, article TEXT, quantity INTEGER, placed TEXT,
    delivery TEXT, reference TEXT, state TEXT
);
CREATE TABLE payments (number INTEGER PRIMARY KEY, ordered INTEGER, paid TEXT, cents INTEGER);

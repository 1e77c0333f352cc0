"""A report in Python, SQL and C: the program of the picture of Profile."""
import json, random, sqlite3, zlib

random.seed(7)
orders = [(n, random.randrange(400), random.randrange(1, 9000)) for n in range(20000)]


def load(database):
    database.execute("create table orders(id, customer, cents)")
    database.executemany("insert into orders values(?, ?, ?)", orders)


def totals(database):
    return database.execute("select customer, sum(cents), count(*) from orders group by customer order by 2 desc").fetchall()


def score(cents, count):
    value = cents % 9973
    for step in range(40):
        value = (value * 31 + count + step) % 9973
    return value


def rank(rows):
    return sorted(rows, key=lambda row: -score(row[1], row[2]))


def pack(rows):
    return len(zlib.compress(json.dumps([dict(customer=c, cents=s, orders=n) for c, s, n in rows], indent=1).encode(), 9))


def report():
    with sqlite3.connect(":memory:") as database:
        load(database)
        for _ in range(8):
            pack(rank(totals(database)))


for _ in range(24):
    report()

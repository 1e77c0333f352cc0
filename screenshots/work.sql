CREATE TABLE orders(id INTEGER PRIMARY KEY, customer INT, price REAL, city TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<24000)
INSERT INTO orders SELECT i, (i*7919)%5000, (i*31%1000)/10.0, 'city '||(i*104729%300) FROM n;
CREATE INDEX by_customer ON orders(customer);
SELECT city, count(*), sum(price) FROM orders GROUP BY city ORDER BY 3 DESC LIMIT 5;
CREATE TABLE customers AS SELECT customer AS id, sum(price) AS spent FROM orders GROUP BY customer;
SELECT count(*) FROM orders o JOIN customers c ON o.customer = c.id AND c.spent > 240 JOIN orders p ON p.customer = c.id WHERE p.price > o.price;
SELECT city, avg(length(city)), max(price) FROM orders WHERE city LIKE '%7%' GROUP BY city ORDER BY 2 LIMIT 3;
UPDATE orders SET price = price * 1.1 WHERE customer % 7 = 3;
SELECT group_concat(customer) FROM (SELECT customer FROM orders ORDER BY price, city LIMIT 3);

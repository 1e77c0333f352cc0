/* The program of `perfprop demo`: reads orders, joins them with customers, sorts and sums them, in turns, so that its counts
   change from one moment to the next. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CUSTOMERS = 40000, ORDERS = 30000, ROUNDS = 12 };

typedef struct { unsigned customer, cents; } Order;
typedef struct Customer { struct Customer *next; unsigned id; unsigned long spent; char name[40]; } Customer;

static Customer *buckets[1 << 14];
static Order orders[ORDERS];
static char text[ORDERS * 24];
static unsigned seed = 7;

static unsigned draw(void) { return (seed = seed * 1664525u + 1013904223u) >> 8; }
static unsigned hash(unsigned id) { return (id * 2654435761u) >> 18; }

static void add_customers(void) {
  for (unsigned id = 0; id < CUSTOMERS; id++) {
    Customer *customer = calloc(1, sizeof *customer);
    customer->id = id;
    snprintf(customer->name, sizeof customer->name, "customer %u", id);
    customer->next = buckets[hash(id)];
    buckets[hash(id)] = customer;
  }
}

static void write_orders(void) {
  char *at = text;
  for (int i = 0; i < ORDERS; i++) at += sprintf(at, "%u,%u\n", draw() % CUSTOMERS, draw() % 10000);
}

static unsigned parse_number(char **at) {
  unsigned number = 0;
  while (**at >= '0' && **at <= '9') number = number * 10 + (unsigned)(*(*at)++ - '0');
  (*at)++;
  return number;
}

static void parse_orders(void) {
  char *at = text;
  for (int i = 0; i < ORDERS; i++) {
    orders[i].customer = parse_number(&at);
    orders[i].cents = parse_number(&at);
  }
}

static Customer *find_customer(unsigned id) {
  Customer *customer = buckets[hash(id)];
  while (customer && customer->id != id) customer = customer->next;
  return customer;
}

static void join_orders(void) {
  for (int i = 0; i < ORDERS; i++) find_customer(orders[i].customer)->spent += orders[i].cents;
}

static int by_cents(const void *a, const void *b) {
  const Order *one = a, *other = b;
  return (one->cents > other->cents) - (one->cents < other->cents);
}

static void sort_orders(void) { qsort(orders, ORDERS, sizeof *orders, by_cents); }

static unsigned long sum_orders(void) {
  unsigned long sum = 0;
  for (int times = 0; times < 60; times++)
    for (int i = 0; i < ORDERS; i++) sum += orders[i].cents;
  return sum;
}

int main(void) {
  unsigned long sum = 0;
  add_customers();
  for (int round = 0; round < ROUNDS; round++) {
    write_orders();
    parse_orders();
    for (int times = 0; times < 4; times++) join_orders();
    sort_orders();
    sum += sum_orders();
  }
  printf("%lu\n", sum);
  return 0;
}

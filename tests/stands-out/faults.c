// Programs with a fault each: ./faults NAME [SECONDS]. tests/stands-out/record says how they are recorded.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 6, MIB = 1 << 20 };

static double end;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static volatile uint64_t sink;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static int is_over(void) { return now() >= end; }

static void spin(double seconds) {
    for (double until = now() + seconds; now() < until;) sink++;
}

static uint64_t random_next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

// Maps memory, touches pages of it, and unmaps it.
static void touch(int pages) {
    char *memory = mmap(0, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(memory, MIB, MADV_NOHUGEPAGE);
    for (int page = 0; page < pages; page++) memory[page * 4096] = 1;
    munmap(memory, MIB);
}

// Maps, touches and unmaps a mebibyte again and again.
static void page_faults(void) {
    while (!is_over()) touch(MIB / 4096);
}

// Six threads do all their work under one lock.
static void *under_lock(void *nothing) {
    while (!is_over()) {
        pthread_mutex_lock(&mutex);
        spin(0.002);
        pthread_mutex_unlock(&mutex);
        usleep(100);
    }
    return nothing;
}

// Four threads meet at a barrier; the first has ten times the work.
static void *uneven(void *number) {
    while (!is_over()) {
        spin(number == 0 ? 0.05 : 0.005);
        pthread_barrier_wait(&barrier);
        // All leave together, whoever sees the end first.
        if (number == 0 && is_over()) _exit(0);
    }
    pthread_barrier_wait(&barrier);
    return number;
}

static pthread_cond_t handed = PTHREAD_COND_INITIALIZER;
static intptr_t turn;

// Two threads hand a token to each other.
static void *hand_over(void *number) {
    pthread_mutex_lock(&mutex);
    while (!is_over()) {
        while (turn != (intptr_t)number) pthread_cond_wait(&handed, &mutex);
        turn = !turn;
        pthread_cond_signal(&handed);
    }
    pthread_mutex_unlock(&mutex);
    return number;
}

static void threads(int count, void *(*run)(void *)) {
    pthread_t all[THREADS];
    pthread_barrier_init(&barrier, 0, count);
    for (intptr_t number = 0; number < count; number++) pthread_create(&all[number], 0, run, (void *)number);
    for (int number = 0; number < count; number++) pthread_join(all[number], 0);
}

static void busy_loop(void) {
    while (!is_over()) sink++;
}

// Touches pages in each thousandth of a second: two in the first 62 s, then 20.
static void more_faults(void) {
    double change = now() + 62;
    while (!is_over()) {
        touch(now() < change ? 2 : 20);
        spin(0.001);
    }
}

// Writes 64 KiB and waits for the disk.
static void disk(void) {
    static char block[64 << 10];
    int file = open("faults.out", O_CREAT | O_WRONLY | O_TRUNC, 0600);
    while (!is_over()) {
        memset(block, rand(), sizeof block);
        if (pwrite(file, block, sizeof block, 0) < 0 || fsync(file) < 0) exit(1);
    }
    unlink("faults.out");
}

// Keeps 2 MiB more each tenth of a second.
static void leak(void) {
    while (!is_over()) {
        char *memory = malloc(2 * MIB);
        memset(memory, 1, 2 * MIB);
        usleep(100000);
    }
}

// Reads 256 MiB at random.
static void thrash(void) {
    size_t size = 256 * MIB / sizeof(uint64_t);
    uint64_t *memory = malloc(size * sizeof *memory), state = 1, sum = 0;
    memset(memory, 1, size * sizeof *memory);
    while (!is_over())
        for (int i = 0; i < 100000; i++) sum += memory[random_next(&state) % size];
    sink = sum;
}

// Branches on random bits.
static void branches(void) {
    uint64_t state = 1, sum = 0;
    while (!is_over())
        for (int i = 0; i < 100000; i++) {
            uint64_t bits = random_next(&state);
            if (bits & 1) sum += bits; else sum ^= 7;
            if (bits & 2) sum -= 3; else sink = sum;
        }
    sink = sum;
}

int main(int count, char **words) {
    const char *name = count > 1 ? words[1] : "";
    end = now() + (count > 2 ? atof(words[2]) : 12);
    if (!strcmp(name, "page-faults")) page_faults();
    else if (!strcmp(name, "lock-convoy")) threads(THREADS, under_lock);
    else if (!strcmp(name, "thread-imbalance")) threads(4, uneven);
    else if (!strcmp(name, "busy-loop")) busy_loop();
    else if (!strcmp(name, "disk-wait")) disk();
    else if (!strcmp(name, "hand-over")) threads(2, hand_over);
    else if (!strcmp(name, "more-faults")) more_faults();
    else if (!strcmp(name, "memory-leak")) leak();
    else if (!strcmp(name, "cache-thrash")) thrash();
    else if (!strcmp(name, "branch-misses")) branches();
    else return fprintf(stderr, "no program %s\n", name), 2;
    return 0;
}

/* Measures what markers of likwid, PAPI or perfprop-regions cost in CPU time, over two readings of the clock; others.sh
 * compiles it for each. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CALLS 100000
#define RUNS 15

#if defined(LIKWID)
#define LIKWID_PERFMON
#include <likwid-marker.h>
static int start(void) {
    LIKWID_MARKER_INIT;
    LIKWID_MARKER_THREADINIT;
    LIKWID_MARKER_REGISTER("region");
    return getenv("LIKWID_FILEPATH") != NULL;
}
static void marker(void) {
    LIKWID_MARKER_START("region");
    LIKWID_MARKER_STOP("region");
}
#elif defined(PAPI)
#include <papi.h>
static int events = PAPI_NULL;
static int start(void) {
    /* A software event of the kernel's: what a machine without counters has. */
    return PAPI_library_init(PAPI_VER_CURRENT) == PAPI_VER_CURRENT && PAPI_create_eventset(&events) == PAPI_OK &&
           PAPI_add_named_event(events, "perf::PAGE-FAULTS") == PAPI_OK && PAPI_start(events) == PAPI_OK;
}
static void marker(void) {
    /* What PAPI's own regions do beside keeping their sums. */
    long long before, after;
    PAPI_read(events, &before);
    PAPI_read(events, &after);
}
#elif defined(PAPI_HL)
#include <papi.h>
static int start(void) { return PAPI_hl_region_begin("first") == PAPI_OK && PAPI_hl_region_end("first") == PAPI_OK; }
static void marker(void) {
    PAPI_hl_region_begin("region");
    PAPI_hl_region_end("region");
}
#else
#include "perfprop.h"
static int start(void) {
    perfprop_record(1);
    return 1;
}
static void marker(void) { perfprop_end(perfprop_begin("region")); }
#endif

static double seconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static volatile double kept;

static void two_readings(void) {
    kept = seconds(CLOCK_MONOTONIC);
    kept = seconds(CLOCK_MONOTONIC);
}

/* CPU time of a call, in nanoseconds. */
static double cost(void (*call)(void)) {
    double begin = seconds(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < CALLS; i++) {
        call();
    }
    return (seconds(CLOCK_THREAD_CPUTIME_ID) - begin) / CALLS * 1e9;
}

static int by_size(const void *a, const void *b) {
    double first = *(const double *)a, second = *(const double *)b;
    return (first > second) - (first < second);
}

int main(void) {
    double ratios[RUNS];
    if (!start()) {
        puts("can't be measured here");
        return 2;
    }
    for (int i = 0; i < RUNS; i++) {
        double two = cost(two_readings);
        ratios[i] = cost(marker) / two;
    }
    qsort(ratios, RUNS, sizeof *ratios, by_size);
    printf("%.2f\n", ratios[RUNS / 2]);
    return 0;
}

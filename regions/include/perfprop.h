/* Named regions of a program: how often each is entered, and what it takes.
 *
 *     uint64_t region = perfprop_begin("likelihood");
 *     ...
 *     perfprop_end(region);
 *
 * In C++:  perfprop::region open("likelihood");
 *
 * Link with -lperfprop_regions. Run the program under perfprop stat, or with PERFPROP_REGION_CSV=file (- is standard
 * output); otherwise a region costs some nanoseconds, and its name isn't read. PERFPROP_REGION_EVENTS=instructions,page-faults
 * counts events in each region. Texts end with a zero and are UTF-8. All of it may be called on any thread.
 *
 * A region ends once, on the thread on which it began. Another end changes nothing, and is said on standard error once.
 *
 * In a signal handler only begin, begin_recursive, end and count may be called. They never wait for what the handler
 * interrupted: where that was one of these functions on the same thread, the handler's call isn't counted, but is in the
 * number of lost calls (lost_calls in JSON; perfprop stat and a message at exit say it). The first call of a name on a thread,
 * and of each place where it nests, takes memory, as malloc does, and so must not be in a handler that may interrupt malloc:
 * begin and end the handler's regions on each thread before, both alone and in the regions that handlers interrupt, and again
 * after each perfprop_phase. */

#ifndef PERFPROP_H
#define PERFPROP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Begins a region. 0 where nothing is recorded, or one of the name is open on this thread, which goes on: this call is
 * counted as lost, and that is said on standard error once. A region that longjmp leaves stays open: end it before. */
uint64_t perfprop_begin(const char *name);

/* The same for a region that records operations, which are run backwards later. */
uint64_t perfprop_begin_recorded(const char *name);

/* The same for a function that calls itself: where one of the name is open, its calls grow by one, and 0 is given. */
uint64_t perfprop_begin_recursive(const char *name);

/* Ends a region. Nothing happens where it is 0. */
void perfprop_end(uint64_t region);

/* Begins a run backwards of what was recorded, and ends it for the region of this name. */
uint64_t perfprop_begin_reverse(void);
void perfprop_end_reverse(const char *name, uint64_t run);

/* A counter of the program's own, one of four; -1 where there is no room. Adds to it in an open region. It stands behind
 * the region's row in perfprop stat, and is a column of the CSV. */
int perfprop_counter(const char *name);
void perfprop_count(uint64_t region, int counter, uint64_t by);

/* Begins a phase of the program, such as "warmup"; "" ends it. */
void perfprop_phase(const char *name);

/* Begins (1) or ends (0) to record regions for the program itself. */
void perfprop_record(int on);

/* Has a function called with what was counted as JSON, at each perfprop_report and at exit, on the thread that reports or
 * exits; data is passed on. From now on regions are recorded. 0 as the function takes all of them back. */
void perfprop_on_report(void (*call)(const char *json, void *data), void *data);
void perfprop_report(void);

/* Does what exit does, once: for a child process that ends by _exit. Its file has the process's number behind the name. */
void perfprop_end_child(void);

#ifdef __cplusplus
}

namespace perfprop {

/* A region that ends with its scope, also by an exception. Its scope ends on the thread on which it began: a region that is
 * handed to another thread doesn't end there. */
class region {
  public:
    explicit region(const char *name) : handle_(perfprop_begin(name)) {}
    ~region() { perfprop_end(handle_); }
    region(const region &) = delete;
    region &operator=(const region &) = delete;

    void count(int counter, uint64_t by) { perfprop_count(handle_, counter, by); }

  private:
    uint64_t handle_;
};

} // namespace perfprop
#endif

#endif

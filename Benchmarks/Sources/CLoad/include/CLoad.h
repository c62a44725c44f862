#ifndef BENCHMARKS_CLOAD_H
#define BENCHMARKS_CLOAD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// What measures must cost less than what is measured: one thread, epoll, kept-alive connections,
// requests made beforehand. Only what the last answer taught is written into the next request.

/// Characters of a revision's field in a request: digits, with spaces before them.
enum { load_revision_width = 12 };
/// Characters of a lineage's field in a request.
enum { load_lineage_width = 32 };

typedef struct {
    uint16_t port;
    int connections;
    /// Requests of each connection, one after the other.
    int requests;
    /// All requests, head and body; those of the first connection first.
    uint8_t *bytes;
    /// Where each request begins, and the end of the last.
    const size_t *starts;
    /// Where in `bytes` each request has its revision and its lineage; 0 for none. Null: nowhere.
    const size_t *revision_at;
    const size_t *lineage_at;
} load_plan;

typedef struct {
    double seconds;
    /// CPU seconds of the load itself.
    double own_seconds;
    /// Bytes of answers, heads included.
    uint64_t received;
    /// The highest `maxRevision` of an answer, and the lineage named with it.
    int64_t revision;
    char lineage[load_lineage_width + 1];
    /// Answers whose status was not the expected one, and the first such status.
    int failures;
    int status;
} load_result;

/// Runs a plan; `nanoseconds` takes each request's latency, in the order of the requests. Each
/// answer should have the status 200. Returns 0, or an errno; the text of a closed connection is
/// ECONNRESET.
int load_run(const load_plan *plan, load_result *result, uint64_t *nanoseconds);

/// The same where an answer should have another status.
int load_run_expecting(
    const load_plan *plan, int status, load_result *result, uint64_t *nanoseconds);

/// CPU seconds a process has used, all its threads, exact to the nanosecond; -1 when unknown.
double process_seconds(pid_t pid);

/// CPU seconds of the calling thread.
double thread_seconds(void);

/// Reads and answers POST requests with a fixed number of bytes: evhttp and nothing else. Prints
/// its port on standard output and returns when standard input ends.
int floor_http(size_t answer_bytes);

typedef struct {
    double seconds;
    double processor_seconds;
} floor_result;

/// What a server's storage must do at least, without a server: `sets` transactions of `records`
/// rows, each with its entry in a log of `body` bytes; `group` sets to a commit; durable (WAL,
/// synchronous=FULL). Returns SQLite's code.
int floor_sqlite(const char *path, int sets, int records, int group, int body, floor_result *out);

typedef enum { rows_insert, rows_update, rows_update_wide } rows_work;

/// Inserts or updates `count` players through a plain connection, in one transaction, with
/// negative keys; or members, with text keys in no order. Returns SQLite's code.
int rows_run(
    const char *path, rows_work work, int has_text_keys, int count, floor_result *out);

/// Runs statements on a plain connection. Returns SQLite's code.
int rows_execute(const char *path, const char *sql);

/// Listeners on connections of their own, and one connection that posts.
typedef struct fanout fanout;

typedef struct {
    /// Seconds from the posting of a change to its answer, and to its arrival at the first listener,
    /// the middle one and the last.
    double answer, first, median, last;
} fanout_times;

/// Opens listeners: each sends `request`, and is there when it has seen `sign`. Returns an errno.
int fanout_open(fanout **made, uint16_t port, int listeners, const char *request, const char *sign);

/// Posts a change and waits until each listener has seen `sign`. Returns an errno.
int fanout_round(fanout *f, const char *request, const char *sign, fanout_times *times);

void fanout_close(fanout *f);

#endif

#ifndef BENCHMARKS_CYAJL_SHIM_H
#define BENCHMARKS_CYAJL_SHIM_H

#include <features.h>
#include <sys/types.h>
#include <yajl/yajl_parse.h>

// The floor for reading JSON: every token is found, checked and handed to a callback that only
// counts it.
static int floor_null(void *n) { ++*(long *)n; return 1; }
static int floor_boolean(void *n, int v) { ++*(long *)n; return 1; }
static int floor_integer(void *n, long long v) { ++*(long *)n; return 1; }
static int floor_double(void *n, double v) { ++*(long *)n; return 1; }
static int floor_text(void *n, const unsigned char *s, size_t l) { ++*(long *)n; return 1; }
static int floor_nothing(void *n) { return 1; }

/// The number of tokens, or -1 when the document is not JSON.
static inline long yajl_floor(const unsigned char *bytes, size_t count) {
    static const yajl_callbacks callbacks = {
        floor_null, floor_boolean, floor_integer, floor_double, 0, floor_text,
        floor_nothing, floor_text, floor_nothing, floor_nothing, floor_nothing};
    long tokens = 0;
    yajl_handle handle = yajl_alloc(&callbacks, 0, &tokens);
    yajl_status status = yajl_parse(handle, bytes, count);
    if (status == yajl_status_ok) status = yajl_complete_parse(handle);
    yajl_free(handle);
    return status == yajl_status_ok ? tokens : -1;
}

#endif

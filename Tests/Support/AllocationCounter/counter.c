#include "AllocationCounter.h"

#include <stddef.h>
#include <stdlib.h>

static _Thread_local int64_t count;
static _Thread_local int64_t bytes;
static _Thread_local int64_t held;
static _Thread_local int64_t most;

int64_t allocations_of_thread(void) { return count; }

int64_t allocated_bytes_of_thread(void) { return bytes; }

int64_t take_peak_bytes_of_thread(void) {
    int64_t peak = most;
    held = 0;
    most = 0;
    return peak;
}

// With glibc a program may define these itself and pass them on
// (https://www.gnu.org/software/libc/manual/html_node/Replacing-malloc.html). Elsewhere nothing is
// counted.
#ifdef __GLIBC__

#include <malloc.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t number, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void __libc_free(void *memory);

static void hold(void *memory) {
    if (!memory)
        return;
    held += (int64_t)malloc_usable_size(memory);
    if (held > most)
        most = held;
}

void *malloc(size_t size) {
    count += 1;
    bytes += (int64_t)size;
    void *memory = __libc_malloc(size);
    hold(memory);
    return memory;
}

void *calloc(size_t number, size_t size) {
    count += 1;
    bytes += (int64_t)(number * size);
    void *memory = __libc_calloc(number, size);
    hold(memory);
    return memory;
}

void *realloc(void *memory, size_t size) {
    count += 1;
    bytes += (int64_t)size;
    int64_t old = memory ? (int64_t)malloc_usable_size(memory) : 0;
    void *moved = __libc_realloc(memory, size);
    if (moved || size == 0) {
        held -= old;
        hold(moved);
    }
    return moved;
}

void free(void *memory) {
    if (memory)
        held -= (int64_t)malloc_usable_size(memory);
    __libc_free(memory);
}

#endif

#ifndef ALLOCATION_COUNTER_H
#define ALLOCATION_COUNTER_H

#include <stdint.h>

/// How often the calling thread has asked for memory; 0 for ever where that cannot be counted.
int64_t allocations_of_thread(void);

/// How many bytes the calling thread has asked for, those given back included.
int64_t allocated_bytes_of_thread(void);

/// The most bytes that the calling thread held at once, beyond those it held at the last call.
int64_t take_peak_bytes_of_thread(void);

#endif

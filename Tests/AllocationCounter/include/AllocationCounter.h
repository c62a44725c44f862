#ifndef ALLOCATION_COUNTER_H
#define ALLOCATION_COUNTER_H

#include <stdint.h>

/// How often the calling thread has asked for memory; 0 for ever where that cannot be counted.
int64_t allocations_of_thread(void);

#endif

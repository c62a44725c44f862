#ifndef BENCHMARKS_CSTORE_H
#define BENCHMARKS_CSTORE_H

#include <stdint.h>

// What a persistence layer is compared with: a careful C program on the same library, with the same
// pragmas. Rows are made beforehand; statements are prepared once; texts are bound without copying.

typedef struct {
    double seconds;
    double processor_seconds;
} store_time;

/// One row of the table `players`: a key and seven columns.
typedef struct {
    /// The key as text; null where the key is a number that SQLite makes.
    char *key;
    int64_t number;
    int64_t team;
    char *first_name;
    char *last_name;
    double score;
    /// -1 stands for null.
    int64_t shirt;
    int32_t active;
    char *note;
} store_player;

/// `count` rows, the same for the same number; text keys are in no order.
store_player *store_players_make(int count, int has_text_keys);
void store_players_free(store_player *players, int count);

/// Makes the file and its table.
int store_create(const char *path, int has_text_keys);

/// Inserts the rows in one transaction. Returns SQLite's code, as all below do.
int store_insert(
    const char *path, const store_player *players, int count, int has_text_keys,
    store_time *out);

/// Reads all rows into structures of their own, every text copied.
int store_read(const char *path, int count, int has_text_keys, store_time *out);

/// Finds `lookups` rows by their keys, all columns copied out.
int store_find(
    const char *path, const store_player *players, int count, int lookups, int has_text_keys,
    store_time *out);

/// `commits` transactions of one row each, durable. `nanoseconds` takes what each took; may be null.
int store_commit(
    const char *path, const store_player *players, int commits, int has_text_keys,
    store_time *out, uint64_t *nanoseconds);

/// What a device has to write at least to take rows in: each row, its key included, and beside it in
/// `martlet_records` the revision it is of; one transaction. `is_noted` 0: the rows alone.
int store_apply(
    const char *path, const store_player *players, int count, int has_text_keys, int is_noted,
    store_time *out);

#endif

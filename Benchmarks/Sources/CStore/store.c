#include "CStore.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double wall(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double thread_seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static char *copied(const char *text, size_t length) {
    char *copy = malloc(length + 1);
    memcpy(copy, text, length);
    copy[length] = 0;
    return copy;
}

// A key like a UUID, in no order, the same for the same number (SplitMix64's mixing).
static char *text_key(int number) {
    char text[40];
    unsigned long long mixed = ((unsigned long long)number + 1) * 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    mixed ^= mixed >> 31;
    int length = snprintf(
        text, sizeof text, "%08x-%04x-4%03x-8000-%012x", (unsigned)(mixed >> 32),
        (unsigned)(mixed >> 16) & 0xffff, (unsigned)mixed & 0xfff, (unsigned)number);
    return copied(text, (size_t)length);
}

store_player *store_players_make(int count, int has_text_keys) {
    store_player *players = calloc((size_t)count, sizeof *players);
    char text[80];
    for (int number = 0; number < count; number++) {
        store_player *player = &players[number];
        if (has_text_keys) player->key = text_key(number);
        player->number = number + 1;
        player->team = 1 + number % 100;
        int length = snprintf(text, sizeof text, "First%d", number % 977);
        player->first_name = copied(text, (size_t)length);
        length = snprintf(text, sizeof text, "Lastname%d-Somewhere", number % 4993);
        player->last_name = copied(text, (size_t)length);
        player->score = number * 0.25;
        player->shirt = number % 10 == 0 ? -1 : number % 99;
        player->active = number % 2;
        length = snprintf(
            text, sizeof text, "A note of some length about player %d of the team", number);
        player->note = copied(text, (size_t)length);
    }
    return players;
}

static void release(store_player *player) {
    free(player->key);
    free(player->first_name);
    free(player->last_name);
    free(player->note);
}

void store_players_free(store_player *players, int count) {
    for (int number = 0; number < count; number++) release(&players[number]);
    free(players);
}

static int open_store(const char *path, sqlite3 **db) {
    int code = sqlite3_open_v2(
        path, db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, 0);
    if (code) return code;
    sqlite3_busy_timeout(*db, 10000);
    return sqlite3_exec(
        *db,
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;"
        "PRAGMA trusted_schema=OFF;",
        0, 0, 0);
}

int store_create(const char *path, int has_text_keys) {
    sqlite3 *db;
    char sql[300];
    snprintf(
        sql, sizeof sql,
        "CREATE TABLE players (id %s PRIMARY KEY, team INTEGER NOT NULL,"
        " first_name TEXT NOT NULL, last_name TEXT NOT NULL, score REAL NOT NULL, shirt INTEGER,"
        " active BOOLEAN NOT NULL, note TEXT NOT NULL)",
        has_text_keys ? "TEXT" : "INTEGER");
    int code = open_store(path, &db);
    if (!code) code = sqlite3_exec(db, sql, 0, 0, 0);
    sqlite3_close(db);
    return code;
}

static const char *const insert_sql = "INSERT INTO players VALUES (?,?,?,?,?,?,?,?)";

static int insert_one(sqlite3_stmt *insert, const store_player *player, int has_number) {
    if (player->key)
        sqlite3_bind_text(insert, 1, player->key, -1, SQLITE_STATIC);
    else if (has_number)
        sqlite3_bind_int64(insert, 1, player->number);
    else
        sqlite3_bind_null(insert, 1);
    sqlite3_bind_int64(insert, 2, player->team);
    sqlite3_bind_text(insert, 3, player->first_name, -1, SQLITE_STATIC);
    sqlite3_bind_text(insert, 4, player->last_name, -1, SQLITE_STATIC);
    sqlite3_bind_double(insert, 5, player->score);
    if (player->shirt < 0)
        sqlite3_bind_null(insert, 6);
    else
        sqlite3_bind_int64(insert, 6, player->shirt);
    sqlite3_bind_int64(insert, 7, player->active);
    sqlite3_bind_text(insert, 8, player->note, -1, SQLITE_STATIC);
    int code = sqlite3_step(insert);
    sqlite3_reset(insert);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

int store_insert(
    const char *path, const store_player *players, int count, int has_text_keys,
    store_time *out
) {
    (void)has_text_keys;
    sqlite3 *db;
    sqlite3_stmt *insert = 0;
    int code = open_store(path, &db);
    double started = wall(), used = thread_seconds();
    if (!code) code = sqlite3_prepare_v2(db, insert_sql, -1, &insert, 0);
    if (!code) code = sqlite3_exec(db, "BEGIN IMMEDIATE", 0, 0, 0);
    for (int number = 0; number < count && !code; number++)
        code = insert_one(insert, &players[number], 0);
    if (!code) code = sqlite3_exec(db, "COMMIT", 0, 0, 0);
    out->seconds = wall() - started;
    out->processor_seconds = thread_seconds() - used;
    sqlite3_finalize(insert);
    sqlite3_close(db);
    return code;
}

static const char *const notes_sql =
    "CREATE TABLE martlet_records(type INTEGER NOT NULL, id NOT NULL, revision INTEGER NOT NULL,"
    " PRIMARY KEY (type, id)) WITHOUT ROWID";

static int note_one(sqlite3_stmt *note, const store_player *player, int revision) {
    sqlite3_bind_int64(note, 1, 1);
    if (player->key)
        sqlite3_bind_text(note, 2, player->key, -1, SQLITE_STATIC);
    else
        sqlite3_bind_int64(note, 2, player->number);
    sqlite3_bind_int64(note, 3, revision);
    int code = sqlite3_step(note);
    sqlite3_reset(note);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

int store_apply(
    const char *path, const store_player *players, int count, int has_text_keys, int is_noted,
    store_time *out
) {
    sqlite3 *db;
    sqlite3_stmt *insert = 0, *note = 0;
    int code = open_store(path, &db);
    // As the connection has it that applies remote change.
    if (!code) code = sqlite3_exec(db, "PRAGMA cache_size = -16384", 0, 0, 0);
    if (!code) code = sqlite3_exec(db, notes_sql, 0, 0, 0);
    double started = wall(), used = thread_seconds();
    if (!code) code = sqlite3_prepare_v2(db, insert_sql, -1, &insert, 0);
    if (!code)
        code = sqlite3_prepare_v2(
            db, "INSERT OR REPLACE INTO martlet_records VALUES (?,?,?)", -1, &note, 0);
    if (!code) code = sqlite3_exec(db, "BEGIN IMMEDIATE", 0, 0, 0);
    for (int number = 0; number < count && !code; number++) {
        code = insert_one(insert, &players[number], !has_text_keys);
        if (!code && is_noted) code = note_one(note, &players[number], 1 + number / 100);
    }
    if (!code) code = sqlite3_exec(db, "COMMIT", 0, 0, 0);
    out->seconds = wall() - started;
    out->processor_seconds = thread_seconds() - used;
    sqlite3_finalize(insert);
    sqlite3_finalize(note);
    sqlite3_close(db);
    return code;
}

static char *text_of(sqlite3_stmt *row, int column) {
    const char *text = (const char *)sqlite3_column_text(row, column);
    return copied(text, (size_t)sqlite3_column_bytes(row, column));
}

static void read_one(sqlite3_stmt *row, store_player *player, int has_text_keys) {
    if (has_text_keys)
        player->key = text_of(row, 0);
    else
        player->number = sqlite3_column_int64(row, 0);
    player->team = sqlite3_column_int64(row, 1);
    player->first_name = text_of(row, 2);
    player->last_name = text_of(row, 3);
    player->score = sqlite3_column_double(row, 4);
    player->shirt =
        sqlite3_column_type(row, 5) == SQLITE_NULL ? -1 : sqlite3_column_int64(row, 5);
    player->active = sqlite3_column_int(row, 6);
    player->note = text_of(row, 7);
}

int store_read(const char *path, int count, int has_text_keys, store_time *out) {
    sqlite3 *db;
    sqlite3_stmt *all = 0;
    int code = open_store(path, &db), read = 0, room = 16;
    store_player *players = calloc((size_t)room, sizeof *players);
    double started = wall(), used = thread_seconds();
    if (!code) code = sqlite3_exec(db, "BEGIN", 0, 0, 0);
    if (!code) code = sqlite3_prepare_v2(db, "SELECT * FROM players", -1, &all, 0);
    while (!code && (code = sqlite3_step(all)) == SQLITE_ROW) {
        if (read == room) {
            room *= 2;
            players = realloc(players, (size_t)room * sizeof *players);
        }
        memset(&players[read], 0, sizeof *players);
        read_one(all, &players[read], has_text_keys);
        read += 1;
        code = SQLITE_OK;
    }
    out->seconds = wall() - started;
    out->processor_seconds = thread_seconds() - used;
    sqlite3_finalize(all);
    sqlite3_close(db);
    store_players_free(players, read);
    if (code != SQLITE_DONE) return code ? code : SQLITE_ERROR;
    return read == count ? SQLITE_OK : SQLITE_MISMATCH;
}

int store_find(
    const char *path, const store_player *players, int count, int lookups, int has_text_keys,
    store_time *out
) {
    sqlite3 *db;
    sqlite3_stmt *find = 0;
    store_player *found = calloc((size_t)lookups, sizeof *found);
    int code = open_store(path, &db);
    double started = wall(), used = thread_seconds();
    if (!code) code = sqlite3_exec(db, "BEGIN", 0, 0, 0);
    if (!code) code = sqlite3_prepare_v2(db, "SELECT * FROM players WHERE id = ?", -1, &find, 0);
    for (int lookup = 0; lookup < lookups && !code; lookup++) {
        const store_player *player = &players[(lookup * 7919LL) % count];
        if (has_text_keys)
            sqlite3_bind_text(find, 1, player->key, -1, SQLITE_STATIC);
        else
            sqlite3_bind_int64(find, 1, player->number);
        code = sqlite3_step(find);
        if (code == SQLITE_ROW) {
            read_one(find, &found[lookup], has_text_keys);
            code = SQLITE_OK;
        } else if (code == SQLITE_DONE) {
            code = SQLITE_NOTFOUND;
        }
        sqlite3_reset(find);
    }
    out->seconds = wall() - started;
    out->processor_seconds = thread_seconds() - used;
    sqlite3_finalize(find);
    sqlite3_close(db);
    store_players_free(found, lookups);
    return code;
}

static int step_once(sqlite3_stmt *statement) {
    int code = sqlite3_step(statement);
    sqlite3_reset(statement);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

int store_commit(
    const char *path, const store_player *players, int commits, int has_text_keys,
    store_time *out, uint64_t *nanoseconds
) {
    (void)has_text_keys;
    sqlite3 *db;
    sqlite3_stmt *insert = 0, *begin = 0, *commit = 0;
    int code = open_store(path, &db);
    if (!code) code = sqlite3_prepare_v2(db, insert_sql, -1, &insert, 0);
    if (!code) code = sqlite3_prepare_v2(db, "BEGIN IMMEDIATE", -1, &begin, 0);
    if (!code) code = sqlite3_prepare_v2(db, "COMMIT", -1, &commit, 0);
    double started = wall(), used = thread_seconds();
    for (int number = 0; number < commits && !code; number++) {
        double from = nanoseconds ? wall() : 0;
        code = step_once(begin);
        if (!code) code = insert_one(insert, &players[number], 0);
        if (!code) code = step_once(commit);
        if (nanoseconds) nanoseconds[number] = (uint64_t)((wall() - from) * 1e9);
    }
    out->seconds = wall() - started;
    out->processor_seconds = thread_seconds() - used;
    sqlite3_finalize(insert);
    sqlite3_finalize(begin);
    sqlite3_finalize(commit);
    sqlite3_close(db);
    return code;
}

#include "CLoad.h"

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

static int open_file(const char *path, sqlite3 **db) {
    int code = sqlite3_open(path, db);
    if (code) return code;
    sqlite3_busy_timeout(*db, 10000);
    return sqlite3_exec(
        *db,
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;"
        "PRAGMA recursive_triggers=ON;",
        0, 0, 0);
}

int rows_execute(const char *path, const char *sql) {
    sqlite3 *db;
    int code = open_file(path, &db);
    if (!code) code = sqlite3_exec(db, sql, 0, 0, 0);
    sqlite3_close(db);
    return code;
}

// A key like a UUID, in no order, the same for the same number (SplitMix64's mixing).
static void bind_text_key(sqlite3_stmt *statement, int number) {
    char text[40];
    unsigned long long mixed = ((unsigned long long)number + 1) * 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    mixed ^= mixed >> 31;
    snprintf(
        text, sizeof text, "%08x-%04x-4%03x-8000-%012x", (unsigned)(mixed >> 32),
        (unsigned)(mixed >> 16) & 0xffff, (unsigned)mixed & 0xfff, (unsigned)number);
    sqlite3_bind_text(statement, 1, text, -1, SQLITE_TRANSIENT);
}

// Everything but the key.
static void bind_player(sqlite3_stmt *insert, int number) {
    char text[64];
    sqlite3_bind_int64(insert, 2, 1 + number % 100);
    snprintf(text, sizeof text, "First%d", number % 977);
    sqlite3_bind_text(insert, 3, text, -1, SQLITE_TRANSIENT);
    snprintf(text, sizeof text, "Last%d", number % 4993);
    sqlite3_bind_text(insert, 4, text, -1, SQLITE_TRANSIENT);
    snprintf(text, sizeof text, "20%02d-%02d-%02d", number % 20, 1 + number % 12, 1 + number % 28);
    sqlite3_bind_text(insert, 5, text, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int64(insert, 6, number % 99);
    sqlite3_bind_int64(insert, 7, number % 2);
    snprintf(text, sizeof text, "player%d@example.org", number);
    sqlite3_bind_text(insert, 8, text, -1, SQLITE_TRANSIENT);
    snprintf(text, sizeof text, "A note of some length about player %d of the team", number);
    sqlite3_bind_text(insert, 9, text, -1, SQLITE_TRANSIENT);
}

static const char *const insert_player = "INSERT INTO players VALUES (?,?,?,?,?,?,?,?,?)";

int floor_sqlite(const char *path, int sets, int records, int group, int body, floor_result *out) {
    sqlite3 *db;
    sqlite3_stmt *player = 0, *entry = 0;
    int code = open_file(path, &db);
    if (!code)
        code = sqlite3_exec(
            db, "CREATE TABLE log(revision INTEGER PRIMARY KEY, body BLOB NOT NULL)", 0, 0, 0);
    if (!code) code = sqlite3_prepare_v2(db, insert_player, -1, &player, 0);
    if (!code) code = sqlite3_prepare_v2(db, "INSERT INTO log VALUES (?,?)", -1, &entry, 0);
    void *bytes = calloc(1, (size_t)body);
    double started = wall(), used = thread_seconds();
    for (int set = 0; set < sets && !code; set++) {
        if (set % group == 0) code = sqlite3_exec(db, "BEGIN IMMEDIATE", 0, 0, 0);
        for (int record = 0; record < records && !code; record++) {
            int number = set * records + record;
            sqlite3_bind_int64(player, 1, number + 1);
            bind_player(player, number);
            if (sqlite3_step(player) != SQLITE_DONE) code = sqlite3_errcode(db);
            sqlite3_reset(player);
        }
        sqlite3_bind_int64(entry, 1, set + 1);
        sqlite3_bind_blob(entry, 2, bytes, body, SQLITE_STATIC);
        if (!code && sqlite3_step(entry) != SQLITE_DONE) code = sqlite3_errcode(db);
        sqlite3_reset(entry);
        if (!code && (set % group == group - 1 || set == sets - 1))
            code = sqlite3_exec(db, "COMMIT", 0, 0, 0);
    }
    out->seconds = wall() - started;
    out->processor_seconds = thread_seconds() - used;
    sqlite3_finalize(player);
    sqlite3_finalize(entry);
    free(bytes);
    sqlite3_close(db);
    return code;
}

int rows_run(
    const char *path, rows_work work, int has_text_keys, int count, floor_result *out
) {
    static const char *const statements[] = {
        "INSERT INTO %s VALUES (?,?,?,?,?,?,?,?,?)",
        "UPDATE %s SET shirt = shirt + 1 WHERE id = ?",
        "UPDATE %s SET shirt = shirt + 1, active = 1 - active, email = email || 'x',"
        " note = note || '.' WHERE id = ?",
    };
    char sql[200];
    snprintf(sql, sizeof sql, statements[work], has_text_keys ? "members" : "players");
    sqlite3 *db;
    sqlite3_stmt *statement = 0;
    int code = open_file(path, &db);
    if (!code) code = sqlite3_prepare_v2(db, sql, -1, &statement, 0);
    double started = wall(), used = thread_seconds();
    if (!code) code = sqlite3_exec(db, "BEGIN IMMEDIATE", 0, 0, 0);
    for (int number = 0; number < count && !code; number++) {
        if (has_text_keys)
            bind_text_key(statement, number);
        else
            sqlite3_bind_int64(statement, 1, -2 - number);
        if (work == rows_insert) bind_player(statement, number);
        if (sqlite3_step(statement) != SQLITE_DONE) code = sqlite3_errcode(db);
        sqlite3_reset(statement);
    }
    if (!code) code = sqlite3_exec(db, "COMMIT", 0, 0, 0);
    out->seconds = wall() - started;
    out->processor_seconds = thread_seconds() - used;
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return code;
}

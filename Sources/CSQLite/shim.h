#ifdef __linux__
#include <features.h>
#endif
#include <sys/types.h>
#include <sqlite3.h>
#include <string.h>

/* Swift calls no function of any number of arguments. */
static inline int csqlite_refuse_double_quoted_text(sqlite3 *database) {
    return sqlite3_db_config(database, SQLITE_DBCONFIG_DQS_DML, 0, (int *)0);
}

static inline int csqlite_enable_triggers(sqlite3 *database, int on) {
    return sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, on, (int *)0);
}

static inline int csqlite_distrust(sqlite3 *database) {
    int code = sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)0);
    if (code == SQLITE_OK)
        code = sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, (int *)0);
    if (code == SQLITE_OK)
        code = sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, (int *)0);
    if (code == SQLITE_OK)
        code = sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_VIEW, 0, (int *)0);
    return code;
}

static inline int csqlite_get_allocator(sqlite3_mem_methods *methods) {
    return sqlite3_config(SQLITE_CONFIG_GETMALLOC, methods);
}

static inline int csqlite_set_allocator(const sqlite3_mem_methods *methods) {
    return sqlite3_config(SQLITE_CONFIG_MALLOC, methods);
}

/* Without it each connection serves small allocations from memory of its own. */
static inline int csqlite_use_no_lookaside(void) {
    return sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0);
}

static inline int csqlite_count_no_memory(void) {
    return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

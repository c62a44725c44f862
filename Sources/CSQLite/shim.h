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

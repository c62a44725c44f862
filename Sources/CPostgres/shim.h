#ifdef __linux__
#include <features.h>
#endif
#include <string.h>
#include <sys/types.h>
#if __has_include(<libpq-fe.h>)
#include <libpq-fe.h>
#else
#include <postgresql/libpq-fe.h>
#endif

/* Counts warnings that a commit's wait for synchronous standbys was given up. They share their code with
   others, and their words may be in any language; the function of the server that gives them tells. */
static inline void martlet_take_notice(void *count, const PGresult *notice) {
    const char *function = PQresultErrorField(notice, PG_DIAG_SOURCE_FUNCTION);
    if (function && strcmp(function, "SyncRepWaitForLSN") == 0) {
        *(int *)count += 1;
    }
}

/* Without this libpq prints warnings of the server to standard error. */
static inline void martlet_take_notices(PGconn *connection, int *count) {
    PQsetNoticeReceiver(connection, martlet_take_notice, count);
}

/* Fields of a report of the server (PG_DIAG_…), which are characters in C. */
static inline const char *martlet_state(const PGresult *result) {
    return PQresultErrorField(result, PG_DIAG_SQLSTATE);
}
static inline const char *martlet_message(const PGresult *result) {
    return PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
}
static inline const char *martlet_severity(const PGresult *result) {
    return PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
}
static inline const char *martlet_schema(const PGresult *result) {
    return PQresultErrorField(result, PG_DIAG_SCHEMA_NAME);
}
static inline const char *martlet_table(const PGresult *result) {
    return PQresultErrorField(result, PG_DIAG_TABLE_NAME);
}
static inline const char *martlet_column(const PGresult *result) {
    return PQresultErrorField(result, PG_DIAG_COLUMN_NAME);
}
static inline const char *martlet_source_file(const PGresult *result) {
    return PQresultErrorField(result, PG_DIAG_SOURCE_FILE);
}
static inline const char *martlet_constraint(const PGresult *result) {
    return PQresultErrorField(result, PG_DIAG_CONSTRAINT_NAME);
}

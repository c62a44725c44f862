#ifdef __linux__
#include <features.h>
#endif
#include <sys/types.h>
#if __has_include(<libpq-fe.h>)
#include <libpq-fe.h>
#else
#include <postgresql/libpq-fe.h>
#endif

/* Without this libpq prints warnings of the server to standard error. */
static inline void martlet_ignore_notice(void *context, const PGresult *notice) {
    (void)context;
    (void)notice;
}

static inline void martlet_ignore_notices(PGconn *connection) {
    PQsetNoticeReceiver(connection, martlet_ignore_notice, (void *)0);
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
static inline const char *martlet_constraint(const PGresult *result) {
    return PQresultErrorField(result, PG_DIAG_CONSTRAINT_NAME);
}

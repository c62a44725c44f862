// The load client as a program of its own, for servers that Swift does not start. Standard input:
// port, connections, requests of each and the status that answers should have; for each request its
// bytes and where in it the revision and the lineage stand (0: nowhere); then all requests. Standard
// output: what a run came to, as JSON; latencies in nanoseconds.
#include "CLoad.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *sentence) {
    fprintf(stderr, "load: %s\n", sentence);
    return 2;
}

static void report(const load_result *result, const uint64_t *nanoseconds, size_t count) {
    printf("{\"seconds\":%.9f,\"own\":%.9f,", result->seconds, result->own_seconds);
    printf("\"received\":%" PRIu64 ",\"revision\":%" PRId64 ",", result->received, result->revision);
    printf("\"lineage\":\"%s\",\"failures\":%d,", result->lineage, result->failures);
    printf("\"status\":%d,\"latencies\":[", result->status);
    for (size_t i = 0; i < count; i++) printf(i ? ",%" PRIu64 : "%" PRIu64, nanoseconds[i]);
    printf("]}\n");
}

int main(void) {
    int port, connections, requests, status;
    if (scanf("%d %d %d %d", &port, &connections, &requests, &status) != 4 || connections < 1
        || requests < 1)
        return fail("the plan has no head");
    size_t count = (size_t)connections * (size_t)requests;
    size_t *starts = calloc(count + 1, sizeof *starts);
    size_t *revision_at = calloc(count, sizeof *revision_at);
    size_t *lineage_at = calloc(count, sizeof *lineage_at);
    uint64_t *nanoseconds = calloc(count, sizeof *nanoseconds);
    if (!starts || !revision_at || !lineage_at || !nanoseconds) return fail("no memory");
    for (size_t i = 0; i < count; i++) {
        size_t length, revision, lineage;
        if (scanf("%zu %zu %zu", &length, &revision, &lineage) != 3)
            return fail("a request is missing");
        starts[i + 1] = starts[i] + length;
        revision_at[i] = revision ? starts[i] + revision : 0;
        lineage_at[i] = lineage ? starts[i] + lineage : 0;
    }
    uint8_t *bytes = malloc(starts[count] + 1);
    if (!bytes) return fail("no memory");
    if (getchar() != '\n' || fread(bytes, 1, starts[count], stdin) != starts[count])
        return fail("the requests are cut off");
    load_plan plan = {
        .port = (uint16_t)port, .connections = connections, .requests = requests, .bytes = bytes,
        .starts = starts, .revision_at = revision_at, .lineage_at = lineage_at};
    load_result result;
    int error = load_run_expecting(&plan, status, &result, nanoseconds);
    if (error) return fail(strerror(error));
    report(&result, nanoseconds, count);
    return 0;
}

#define _GNU_SOURCE
#include "CLoad.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

typedef struct {
    int fd;
    int next;       // the request under way
    size_t sent;    // bytes of it written
    int is_writing; // whether epoll watches for room
    uint64_t began;
    uint8_t *buffer;
    size_t count, capacity;
    size_t head;   // bytes of the answer's head; 0 until it is complete
    size_t length; // bytes of the answer's body
    int status;
    int is_gzip;
    int64_t revision;
    char lineage[load_lineage_width];
    int has_lineage;
} connection;

static uint64_t now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

double thread_seconds(void) { return (double)now(CLOCK_THREAD_CPUTIME_ID) / 1e9; }

double process_seconds(pid_t pid) {
    clockid_t clock;
    struct timespec time;
    if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &time)) return -1;
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int dial(uint16_t port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(fd, (struct sockaddr *)&address, sizeof address)) {
        close(fd);
        return -1;
    }
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    return fd;
}

static void write_revision(uint8_t *target, int64_t revision) {
    char text[32];
    snprintf(text, sizeof text, "%*lld", load_revision_width, (long long)revision);
    memcpy(target, text, load_revision_width);
}

// Sends what the socket takes. Returns an errno.
static int push(const load_plan *plan, int epoll, connection *c, int index) {
    size_t request = (size_t)index * plan->requests + c->next;
    size_t end = plan->starts[request + 1];
    while (plan->starts[request] + c->sent < end) {
        const uint8_t *from = plan->bytes + plan->starts[request] + c->sent;
        ssize_t wrote = send(c->fd, from, end - plan->starts[request] - c->sent, MSG_NOSIGNAL);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0 && errno != EAGAIN) return errno;
        if (wrote < 0) break;
        c->sent += (size_t)wrote;
    }
    int wants = plan->starts[request] + c->sent < end;
    if (wants != c->is_writing) {
        struct epoll_event event = {.events = EPOLLIN | (wants ? EPOLLOUT : 0), .data.u32 = index};
        epoll_ctl(epoll, EPOLL_CTL_MOD, c->fd, &event);
        c->is_writing = wants;
    }
    return 0;
}

static int begin(const load_plan *plan, int epoll, connection *c, int index) {
    size_t request = (size_t)index * plan->requests + c->next;
    // Before the first answer nothing is known that the request does not say itself.
    if (c->next > 0 && plan->revision_at && plan->revision_at[request])
        write_revision(plan->bytes + plan->revision_at[request], c->revision);
    if (c->has_lineage && plan->lineage_at && plan->lineage_at[request])
        memcpy(plan->bytes + plan->lineage_at[request], c->lineage, load_lineage_width);
    c->sent = 0;
    c->began = now(CLOCK_MONOTONIC);
    return push(plan, epoll, c, index);
}

static const char *find(const char *in, size_t count, const char *text) {
    return memmem(in, count, text, strlen(text));
}

static int has_head(connection *c) {
    const char *end = find((char *)c->buffer, c->count, "\r\n\r\n");
    if (!end) return 0;
    c->head = (size_t)(end + 4 - (char *)c->buffer);
    c->status = atoi((char *)c->buffer + 9);
    c->length = 0;
    c->is_gzip = 0;
    char *line = (char *)c->buffer;
    while ((line = memchr(line, '\n', (size_t)(end + 1 - line)))) {
        line += 1;
        if (!strncasecmp(line, "content-length:", 15)) c->length = strtoull(line + 15, 0, 10);
        if (!strncasecmp(line, "content-encoding: gzip", 22)) c->is_gzip = 1;
    }
    // “Not modified” names the length of what it does not send (RFC 9110, 15.4.5).
    if (c->status == 304) c->length = 0;
    return 1;
}

// What the beginning of an answer says: the device's next request says it too.
static void learn(connection *c) {
    char start[320];
    size_t count = 0;
    if (c->is_gzip) {
        z_stream stream = {.next_in = c->buffer + c->head, .avail_in = (uInt)c->length};
        stream.next_out = (Bytef *)start;
        stream.avail_out = sizeof start;
        if (inflateInit2(&stream, 31) == Z_OK) {
            inflate(&stream, Z_SYNC_FLUSH);
            count = sizeof start - stream.avail_out;
            inflateEnd(&stream);
        }
    } else {
        count = c->length < sizeof start ? c->length : sizeof start;
        memcpy(start, c->buffer + c->head, count);
    }
    const char *revision = find(start, count, "\"maxRevision\":");
    if (revision) c->revision = strtoll(revision + 14, 0, 10);
    const char *lineage = find(start, count, "\"lineage\":\"");
    if (lineage && lineage + 11 + load_lineage_width <= start + count) {
        memcpy(c->lineage, lineage + 11, load_lineage_width);
        c->has_lineage = 1;
    }
}

// Reads what is there. Returns an errno, or -1 when the answer is complete.
static int pull(connection *c, load_result *result) {
    for (;;) {
        if (c->count == c->capacity) {
            c->capacity = c->capacity * 2;
            c->buffer = realloc(c->buffer, c->capacity);
        }
        ssize_t got = recv(c->fd, c->buffer + c->count, c->capacity - c->count, 0);
        if (got == 0) return ECONNRESET;
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return errno == EAGAIN ? 0 : errno;
        c->count += (size_t)got;
        result->received += (size_t)got;
        if (!c->head && !has_head(c)) continue;
        if (c->count >= c->head + c->length) return -1;
    }
}

static int finish(
    const load_plan *plan, int epoll, connection *c, int index, load_result *result,
    uint64_t *nanoseconds, int *open, int status
) {
    nanoseconds[(size_t)index * plan->requests + c->next] = now(CLOCK_MONOTONIC) - c->began;
    if (c->status != status && !result->failures++) result->status = c->status;
    learn(c);
    if (c->revision > result->revision) {
        result->revision = c->revision;
        memcpy(result->lineage, c->lineage, load_lineage_width);
    }
    c->count = c->head = 0;
    if (++c->next < plan->requests) return begin(plan, epoll, c, index);
    epoll_ctl(epoll, EPOLL_CTL_DEL, c->fd, 0);
    --*open;
    return 0;
}

static int run(
    const load_plan *plan, int epoll, connection *all, load_result *result, uint64_t *nanoseconds,
    int status
) {
    int open = plan->connections;
    for (int index = 0; index < plan->connections; index++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = index};
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, all[index].fd, &event)) return errno;
        int error = begin(plan, epoll, &all[index], index);
        if (error) return error;
    }
    struct epoll_event events[64];
    while (open > 0) {
        int count = epoll_wait(epoll, events, 64, 60000);
        if (count == 0) return ETIMEDOUT;
        if (count < 0 && errno != EINTR) return errno;
        for (int i = 0; i < count; i++) {
            int index = (int)events[i].data.u32;
            connection *c = &all[index];
            int error = 0;
            if (events[i].events & EPOLLOUT) error = push(plan, epoll, c, index);
            if (!error && events[i].events & ~(uint32_t)EPOLLOUT) error = pull(c, result);
            if (error == -1)
                error = finish(plan, epoll, c, index, result, nanoseconds, &open, status);
            if (error) return error;
        }
    }
    return 0;
}

int load_run(const load_plan *plan, load_result *result, uint64_t *nanoseconds) {
    return load_run_expecting(plan, 200, result, nanoseconds);
}

int load_run_expecting(
    const load_plan *plan, int status, load_result *result, uint64_t *nanoseconds
) {
    memset(result, 0, sizeof *result);
    connection *all = calloc((size_t)plan->connections, sizeof *all);
    int error = 0;
    int dialled = 0;
    for (; dialled < plan->connections && !error; dialled++) {
        connection *c = &all[dialled];
        c->capacity = 1 << 16;
        c->buffer = malloc(c->capacity);
        if ((c->fd = dial(plan->port)) < 0) error = errno;
    }
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    double own = thread_seconds();
    uint64_t start = now(CLOCK_MONOTONIC);
    if (!error) error = run(plan, epoll, all, result, nanoseconds, status);
    result->seconds = (double)(now(CLOCK_MONOTONIC) - start) / 1e9;
    result->own_seconds = thread_seconds() - own;
    for (int i = 0; i < dialled; i++) {
        if (all[i].fd >= 0) close(all[i].fd);
        free(all[i].buffer);
    }
    free(all);
    close(epoll);
    return error;
}

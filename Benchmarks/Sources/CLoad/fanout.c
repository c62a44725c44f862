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
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

// A listener keeps what it has not understood yet: a few hundred bytes.
typedef struct {
    int fd;
    size_t count;
    char buffer[2048];
    uint64_t reached; // when the round's change was here
} listener;

struct fanout {
    int epoll;
    int count;
    int poster;
    listener *all;
};

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
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
    return fd;
}

// Reads what is there; what is longer than the buffer loses its front. Returns an errno.
static int take(listener *l) {
    for (;;) {
        if (l->count == sizeof l->buffer - 1) {
            memmove(l->buffer, l->buffer + l->count / 2, l->count - l->count / 2);
            l->count -= l->count / 2;
        }
        ssize_t got = recv(
            l->fd, l->buffer + l->count, sizeof l->buffer - 1 - l->count, MSG_DONTWAIT);
        if (got == 0) return ECONNRESET;
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return errno == EAGAIN ? 0 : errno;
        l->count += (size_t)got;
    }
}

// Waits until each listener has seen a text. Returns an errno.
static int await_all(fanout *f, const char *text, uint64_t since, int answered, double *answer) {
    int left = f->count;
    struct epoll_event events[256];
    for (int i = 0; i < f->count; i++) f->all[i].reached = 0;
    while (left > 0 || !answered) {
        int count = epoll_wait(f->epoll, events, 256, 20000);
        if (count == 0) return ETIMEDOUT;
        if (count < 0 && errno != EINTR) return errno;
        for (int i = 0; i < count; i++) {
            if (events[i].data.u32 == (uint32_t)f->count) {
                char answer_bytes[65536];
                ssize_t got = recv(f->poster, answer_bytes, sizeof answer_bytes, MSG_DONTWAIT);
                if (got == 0) return ECONNRESET;
                if (got > 12 && !answered) {
                    if (memcmp(answer_bytes + 9, "200", 3)) return EPROTO;
                    answered = 1;
                    *answer = (double)(now() - since) / 1e9;
                }
                continue;
            }
            listener *l = &f->all[events[i].data.u32];
            int error = take(l);
            if (error) return error;
            if (!l->reached && memmem(l->buffer, l->count, text, strlen(text))) {
                l->reached = now();
                l->count = 0;
                left--;
            }
        }
    }
    return 0;
}

int fanout_open(fanout **made, uint16_t port, int listeners, const char *request, const char *sign) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    fanout *f = calloc(1, sizeof *f);
    *made = f;
    f->all = calloc((size_t)listeners, sizeof *f->all);
    f->epoll = epoll_create1(EPOLL_CLOEXEC);
    f->poster = dial(port);
    if (f->poster < 0) return errno;
    for (; f->count < listeners; f->count++) {
        listener *l = &f->all[f->count];
        if ((l->fd = dial(port)) < 0) return errno;
        if (send(l->fd, request, strlen(request), MSG_NOSIGNAL) < 0) return errno;
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)f->count};
        if (epoll_ctl(f->epoll, EPOLL_CTL_ADD, l->fd, &event)) return errno;
    }
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)f->count};
    if (epoll_ctl(f->epoll, EPOLL_CTL_ADD, f->poster, &event)) return errno;
    double ignored;
    return await_all(f, sign, 0, 1, &ignored);
}

static int ascending(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

int fanout_round(fanout *f, const char *request, const char *sign, fanout_times *times) {
    uint64_t start = now();
    if (send(f->poster, request, strlen(request), MSG_NOSIGNAL) < 0) return errno;
    int error = await_all(f, sign, start, 0, &times->answer);
    if (error) return error;
    double *seconds = calloc((size_t)f->count, sizeof *seconds);
    for (int i = 0; i < f->count; i++)
        seconds[i] = (double)(f->all[i].reached - start) / 1e9;
    qsort(seconds, (size_t)f->count, sizeof *seconds, ascending);
    times->first = seconds[0];
    times->median = seconds[f->count / 2];
    times->last = seconds[f->count - 1];
    free(seconds);
    return 0;
}

void fanout_close(fanout *f) {
    for (int i = 0; i < f->count; i++) close(f->all[i].fd);
    if (f->poster >= 0) close(f->poster);
    close(f->epoll);
    free(f->all);
    free(f);
}

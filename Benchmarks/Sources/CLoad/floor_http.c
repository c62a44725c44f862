#include "CLoad.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    char *bytes;
    size_t count;
} answer;

static void answer_request(struct evhttp_request *request, void *context) {
    const answer *with = context;
    struct evbuffer *body = evhttp_request_get_input_buffer(request);
    // A server has to look at the body as a whole.
    evbuffer_pullup(body, -1);
    struct evbuffer *out = evbuffer_new();
    evbuffer_add(out, with->bytes, with->count);
    evhttp_add_header(
        evhttp_request_get_output_headers(request), "Content-Type", "application/json");
    evhttp_send_reply(request, 200, "OK", out);
    evbuffer_free(out);
}

static void input_ended(evutil_socket_t fd, short what, void *context) {
    char byte;
    if (read(fd, &byte, 1) <= 0) event_base_loopbreak(context);
}

int floor_http(size_t answer_bytes) {
    answer with = {malloc(answer_bytes), answer_bytes};
    memset(with.bytes, ' ', with.count);
    struct event_base *base = event_base_new();
    struct evhttp *http = evhttp_new(base);
    evhttp_set_max_body_size(http, 64 << 20);
    evhttp_set_allowed_methods(http, EVHTTP_REQ_POST);
    evhttp_set_gencb(http, answer_request, &with);
    struct evhttp_bound_socket *bound = evhttp_bind_socket_with_handle(http, "127.0.0.1", 0);
    if (!bound) return 1;
    struct sockaddr_in address;
    socklen_t size = sizeof address;
    getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&address, &size);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    // epoll takes pipes; a file as standard input would not be watched.
    struct event *ended = event_new(base, 0, EV_READ | EV_PERSIST, input_ended, base);
    event_add(ended, 0);
    event_base_dispatch(base);
    event_free(ended);
    evhttp_free(http);
    event_base_free(base);
    free(with.bytes);
    return 0;
}

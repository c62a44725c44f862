#ifdef __linux__
#include <features.h>
#include <malloc.h>
#endif
#include <sys/types.h>
#include <time.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <event2/event.h>
#include <event2/thread.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/listener.h>
#include <openssl/ssl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

/* Macros and enumerations Swift does not import. */

static inline int martlet_tls_require_1_2(SSL_CTX *context) {
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
}

// Returns when the certificate of a context ends, in seconds since 1970; 0 if that cannot be told.
static inline long long martlet_tls_end(SSL_CTX *context) {
    X509 *certificate = SSL_CTX_get0_certificate(context);
    int days = 0, seconds = 0;
    if (certificate == NULL) return 0;
    if (ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(certificate)) != 1) return 0;
    return (long long)time(NULL) + days * 86400LL + seconds;
}

static inline struct bufferevent *martlet_bufferevent(struct event_base *base,
                                                      evutil_socket_t socket) {
    return bufferevent_socket_new(base, socket, BEV_OPT_CLOSE_ON_FREE);
}

static inline struct bufferevent *martlet_bufferevent_tls(struct event_base *base,
                                                          evutil_socket_t socket, SSL *ssl) {
    return bufferevent_openssl_socket_new(base, socket, ssl, BUFFEREVENT_SSL_ACCEPTING,
                                          BEV_OPT_CLOSE_ON_FREE);
}

static inline int martlet_raise_descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return -1;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit);
}

/* Files the process may have open; -1 where nobody knows. */
static inline long martlet_descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return -1;
    return limit.rlim_cur > 1L << 30 ? 1L << 30 : (long)limit.rlim_cur;
}

/* Has each piece of memory of a mebibyte or more go back to the system as soon as it is free. Otherwise
   glibc keeps what a moment of long answers took. */
static inline void martlet_return_large_pieces(void) {
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
#endif
}

static inline ssize_t martlet_send(evutil_socket_t socket, const void *bytes, size_t count) {
    return send(socket, bytes, count, MSG_NOSIGNAL);
}

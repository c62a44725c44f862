#ifdef __linux__
#include <features.h>
#endif
#include <sys/types.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <signal.h>
#include <hiredis/hiredis.h>

/* hiredis writes with write(2), which ends a process that nobody told otherwise. */
static inline void martlet_ignore_broken_pipes(void) {
    struct sigaction action;
    if (sigaction(SIGPIPE, (const struct sigaction *)0, &action) == 0 &&
        !(action.sa_flags & SA_SIGINFO) && action.sa_handler == SIG_DFL)
        signal(SIGPIPE, SIG_IGN);
}

/* What connecting ended with; 0 when it succeeded. */
static inline int martlet_socket_error(int socket) {
    int code = 0;
    socklen_t size = sizeof code;
    return getsockopt(socket, SOL_SOCKET, SO_ERROR, &code, &size) == 0 ? code : -1;
}

/* Bytes that have come in and are no reply yet. */
static inline size_t martlet_unread(const redisContext *context) {
    return context->reader->len - context->reader->pos;
}

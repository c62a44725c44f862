// Counts what a program does to files and sockets, and lets one of these operations fail, or ends the
// program at it. scripts/operators loads this before the C library (LD_PRELOAD):
//
//   MARTLET_FAULT=PROGRAM:WAY:FIRST:LAST   what happens to the operations FIRST to LAST of PROGRAM
//   MARTLET_FAULT_LOG=FILE                 gets a line for each operation
//
// Ways: count; before, after and half (SIGKILL before it, after it, or after half of a write);
// or a number of errno, with which it fails. A socket that fails is shut down, too.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long counted;
static long first, last;
static int error_number;
static enum { OFF, COUNT, BEFORE, AFTER, HALF, FAIL } way = OFF;
static int log_file = -1;

__attribute__((constructor)) static void begin(void) {
    char program[64], word[16];
    const char *text = getenv("MARTLET_FAULT");
    if (!text || sscanf(text, "%63[^:]:%15[^:]:%ld:%ld", program, word, &first, &last) != 4) return;
    if (strcmp(program, program_invocation_short_name) != 0) return;
    const char *path = getenv("MARTLET_FAULT_LOG");
    if (path) {
        log_file = (int)syscall(
            SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    }
    error_number = atoi(word);
    way = error_number ? FAIL
        : strcmp(word, "before") == 0 ? BEFORE
        : strcmp(word, "after") == 0 ? AFTER
        : strcmp(word, "half") == 0 ? HALF : COUNT;
}

static void end(void) {
    syscall(SYS_kill, getpid(), SIGKILL);
    for (;;) pause();
}

static void note(long number, const char *name, int folder, const char *path, int file) {
    if (log_file < 0) return;
    char link[64], target[PATH_MAX] = "", line[2 * PATH_MAX];
    if (file >= 0) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", file);
        ssize_t size = readlink(link, target, sizeof target - 1);
        if (size > 0) target[size] = 0;
    } else if (path[0] != '/' && folder != AT_FDCWD) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t size = readlink(link, target, sizeof target - 1);
        if (size < 0) size = 0;
        snprintf(target + size, sizeof target - (size_t)size, "/%s", path);
    } else {
        snprintf(target, sizeof target, "%s", path);
    }
    int size = snprintf(line, sizeof line, "%ld\t%s\t%s\n", number, name, target);
    syscall(SYS_write, log_file, line, (size_t)size);
}

// What an operation is to do: fail (-1), or happen, with an end after it or after half of it.
static int turn(const char *name, int folder, const char *path, int file) {
    if (way == OFF) return 0;
    long number = atomic_fetch_add(&counted, 1) + 1;
    note(number, name, folder, path, file);
    if (number < first || number > last || way == COUNT) return 0;
    if (way == BEFORE) end();
    if (way == FAIL) {
        struct stat facts;
        int is_socket = file >= 0 && fstat(file, &facts) == 0 && S_ISSOCK(facts.st_mode);
        if (is_socket) shutdown(file, SHUT_RDWR);
        errno = is_socket ? ECONNRESET : error_number;
        return -1;
    }
    return way == HALF ? 2 : 1;
}

// Whether a write concerns a file or a socket; terminals and pipes are what a person sees.
static int matters(int file) {
    struct stat facts;
    return way != OFF && file > 2 && file != log_file && fstat(file, &facts) == 0
        && (S_ISREG(facts.st_mode) || S_ISSOCK(facts.st_mode));
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define DO(type, call, ...) { \
    int what = turn(__VA_ARGS__); \
    if (what < 0) return -1; \
    type result = call; \
    if (what > 0) end(); \
    return result; }

#define OPENING(name) \
    int name(const char *path, int flags, ...) { \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        if (!(flags & (O_CREAT | O_TRUNC))) return REAL(name)(path, flags, mode); \
        DO(int, REAL(name)(path, flags, mode), "open", AT_FDCWD, path, -1) \
    }
OPENING(open)
OPENING(open64)
#define OPENING_AT(name) \
    int name(int folder, const char *path, int flags, ...) { \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        if (!(flags & (O_CREAT | O_TRUNC))) return REAL(name)(folder, path, flags, mode); \
        DO(int, REAL(name)(folder, path, flags, mode), "open", folder, path, -1) \
    }
OPENING_AT(openat)
OPENING_AT(openat64)

#define WRITING(type, name, signature, half, ...) \
    type name signature { \
        if (!matters(file)) return REAL(name)(__VA_ARGS__); \
        int what = turn(#name, 0, "", file); \
        if (what < 0) return -1; \
        if (what == 2) { half; end(); } \
        type result = REAL(name)(__VA_ARGS__); \
        if (what > 0) end(); \
        return result; \
    }
WRITING(ssize_t, write, (int file, const void *bytes, size_t size),
    REAL(write)(file, bytes, size / 2), file, bytes, size)
WRITING(ssize_t, pwrite, (int file, const void *bytes, size_t size, off_t offset),
    REAL(pwrite)(file, bytes, size / 2, offset), file, bytes, size, offset)
WRITING(ssize_t, pwrite64, (int file, const void *bytes, size_t size, off64_t offset),
    REAL(pwrite64)(file, bytes, size / 2, offset), file, bytes, size, offset)
WRITING(ssize_t, writev, (int file, const struct iovec *parts, int count),
    REAL(writev)(file, parts, count / 2), file, parts, count)
WRITING(ssize_t, send, (int file, const void *bytes, size_t size, int flags),
    REAL(send)(file, bytes, size / 2, flags), file, bytes, size, flags)
WRITING(ssize_t, sendto,
    (int file, const void *bytes, size_t size, int flags, const struct sockaddr *to, socklen_t length),
    REAL(sendto)(file, bytes, size / 2, flags, to, length), file, bytes, size, flags, to, length)
WRITING(ssize_t, sendmsg, (int file, const struct msghdr *message, int flags),
    (void)0, file, message, flags)
WRITING(ssize_t, copy_file_range,
    (int from, off64_t *begin, int file, off64_t *offset, size_t size, unsigned int flags),
    REAL(copy_file_range)(from, begin, file, offset, size / 2, flags),
    from, begin, file, offset, size, flags)
WRITING(ssize_t, sendfile, (int file, int from, off_t *begin, size_t size),
    REAL(sendfile)(file, from, begin, size / 2), file, from, begin, size)
WRITING(ssize_t, sendfile64, (int file, int from, off64_t *begin, size_t size),
    REAL(sendfile64)(file, from, begin, size / 2), file, from, begin, size)
WRITING(int, ftruncate, (int file, off_t size), (void)0, file, size)
WRITING(int, ftruncate64, (int file, off64_t size), (void)0, file, size)
WRITING(int, fchmod, (int file, mode_t mode), (void)0, file, mode)
WRITING(int, fchown, (int file, uid_t user, gid_t group), (void)0, file, user, group)

int fsync(int file) { DO(int, REAL(fsync)(file), "fsync", 0, "", file) }
int fdatasync(int file) { DO(int, REAL(fdatasync)(file), "fdatasync", 0, "", file) }

#define NAMING(name, signature, folder, path, ...) \
    int name signature { DO(int, REAL(name)(__VA_ARGS__), #name, folder, path, -1) }
NAMING(unlink, (const char *path), AT_FDCWD, path, path)
NAMING(unlinkat, (int folder, const char *path, int flags), folder, path, folder, path, flags)
NAMING(rmdir, (const char *path), AT_FDCWD, path, path)
NAMING(mkdir, (const char *path, mode_t mode), AT_FDCWD, path, path, mode)
NAMING(mkdirat, (int folder, const char *path, mode_t mode), folder, path, folder, path, mode)
NAMING(chmod, (const char *path, mode_t mode), AT_FDCWD, path, path, mode)
NAMING(chown, (const char *path, uid_t user, gid_t group), AT_FDCWD, path, path, user, group)
NAMING(link, (const char *path, const char *to), AT_FDCWD, to, path, to)
NAMING(linkat, (int folder, const char *path, int into, const char *to, int flags), into, to,
    folder, path, into, to, flags)
NAMING(symlink, (const char *text, const char *path), AT_FDCWD, path, text, path)

// The log has both names of a renaming.
static int moved(const char *name, int folder, const char *path, int into, const char *to) {
    if (way != OFF) note(0, "from", folder, path, -1);
    return turn(name, into, to, -1);
}
#define MOVING(name, signature, folder, path, into, to, ...) \
    int name signature { \
        int what = moved("rename", folder, path, into, to); \
        if (what < 0) return -1; \
        int result = REAL(name)(__VA_ARGS__); \
        if (what > 0) end(); \
        return result; \
    }
MOVING(rename, (const char *path, const char *to), AT_FDCWD, path, AT_FDCWD, to, path, to)
MOVING(renameat, (int folder, const char *path, int into, const char *to), folder, path, into, to,
    folder, path, into, to)
MOVING(renameat2, (int folder, const char *path, int into, const char *to, unsigned int flags),
    folder, path, into, to, folder, path, into, to, flags)

/* Lets one system call on files below a folder fail, for tests: preloaded into a Python process.

   FAILING_FOLDER  calls on files below this absolute folder count
   FAILING_AT      the number, from 1, of the call that fails
   FAILING_CODE    the errno it fails with
   FAILING_ON      not empty: all calls from that one on fail, as on a disk that stays full

   Nothing fails before the program called failing_disk_start(); failing_disk_seen() tells how many
   calls counted. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static int is_started = 0;
static long seen = 0;

void failing_disk_start(void) { is_started = 1; }
long failing_disk_seen(void) { return seen; }

static int is_below(const char *path) {
  const char *folder = getenv("FAILING_FOLDER");
  return folder != NULL && strncmp(path, folder, strlen(folder)) == 0;
}

static int is_of_folder(int fd) {
  char link[64], target[PATH_MAX + 1];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, target, PATH_MAX);
  if (length <= 0) return 0;
  target[length] = 0;
  return is_below(target);
}

static int is_meant(int folder, const char *path) {
  if (path != NULL && path[0] == '/') return is_below(path);
  return folder != AT_FDCWD && is_of_folder(folder);
}

/* Whether this call is to fail; errno is set then. */
static int fails(void) {
  const char *at = getenv("FAILING_AT"), *code = getenv("FAILING_CODE");
  const char *on = getenv("FAILING_ON");
  if (!is_started || at == NULL || code == NULL) return 0;
  long number = __sync_add_and_fetch(&seen, 1);
  if (number != atol(at) && !(on != NULL && on[0] && number > atol(at))) return 0;
  errno = atoi(code);
  return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define FD_CALL(type, name, parameters, arguments)      \
  type name parameters {                                \
    if (is_started && is_of_folder(fd) && fails()) return -1; \
    return REAL(name) arguments;                        \
  }

#define PATH_CALL(name, parameters, arguments, folder, path)         \
  int name parameters {                                              \
    if (is_started && is_meant(folder, path) && fails()) return -1;  \
    return REAL(name) arguments;                                     \
  }

FD_CALL(ssize_t, write, (int fd, const void *data, size_t size), (fd, data, size))
FD_CALL(ssize_t, pwrite, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at))
FD_CALL(ssize_t, pwrite64, (int fd, const void *data, size_t size, off64_t at), (fd, data, size, at))
FD_CALL(int, fsync, (int fd), (fd))
FD_CALL(int, fdatasync, (int fd), (fd))
FD_CALL(int, ftruncate, (int fd, off_t size), (fd, size))
FD_CALL(int, ftruncate64, (int fd, off64_t size), (fd, size))
FD_CALL(int, fchmod, (int fd, mode_t mode), (fd, mode))

PATH_CALL(rename, (const char *from, const char *to), (from, to), AT_FDCWD, to)
PATH_CALL(renameat, (int a, const char *from, int b, const char *to), (a, from, b, to), b, to)
PATH_CALL(renameat2, (int a, const char *from, int b, const char *to, unsigned flags),
          (a, from, b, to, flags), b, to)
PATH_CALL(link, (const char *from, const char *to), (from, to), AT_FDCWD, to)
PATH_CALL(linkat, (int a, const char *from, int b, const char *to, int flags),
          (a, from, b, to, flags), b, to)
PATH_CALL(unlink, (const char *path), (path), AT_FDCWD, path)
PATH_CALL(unlinkat, (int folder, const char *path, int flags), (folder, path, flags), folder, path)
PATH_CALL(mkdir, (const char *path, mode_t mode), (path, mode), AT_FDCWD, path)
PATH_CALL(mkdirat, (int folder, const char *path, mode_t mode), (folder, path, mode), folder, path)

static mode_t mode_of(int flags, va_list more) {
  return flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
}

#define OPEN_CALL(name, parameters, folder, call)                                    \
  int name parameters {                                                              \
    va_list more;                                                                    \
    va_start(more, flags);                                                           \
    mode_t mode = mode_of(flags, more);                                              \
    va_end(more);                                                                    \
    if (is_started && (flags & (O_WRONLY | O_RDWR)) && is_meant(folder, path) && fails()) return -1; \
    return REAL(name) call;                                                          \
  }

OPEN_CALL(open, (const char *path, int flags, ...), AT_FDCWD, (path, flags, mode))
OPEN_CALL(open64, (const char *path, int flags, ...), AT_FDCWD, (path, flags, mode))
OPEN_CALL(openat, (int folder, const char *path, int flags, ...), folder, (folder, path, flags, mode))
OPEN_CALL(openat64, (int folder, const char *path, int flags, ...), folder, (folder, path, flags, mode))

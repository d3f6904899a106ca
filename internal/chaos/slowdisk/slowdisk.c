// Slows fdatasync and fsync down while the file that CHAOS_FSYNC_FILE names holds a number: so many milliseconds each.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void wait_for_disk(void) {
  int kept = errno;
  const char *path = getenv("CHAOS_FSYNC_FILE");
  int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (fd >= 0) {
    char text[16] = {0};
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    long ms = n > 0 ? atol(text) : 0;
    if (ms > 0 && ms <= 10000) {
      struct timespec rest = {ms / 1000, (ms % 1000) * 1000000L};
      while (nanosleep(&rest, &rest) == -1 && errno == EINTR) {
      }
    }
  }
  errno = kept;
}

int fdatasync(int fd) {
  static int (*real)(int);
  if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  wait_for_disk();
  return real(fd);
}

int fsync(int fd) {
  static int (*real)(int);
  if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  wait_for_disk();
  return real(fd);
}

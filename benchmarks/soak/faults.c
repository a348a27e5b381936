/* Preloaded into a server: its clock and its disk do as the file $FAULTS says.
 *
 * The file holds two 64-bit numbers: nanoseconds to add to the clock that can be set, and whether
 * the disk is full. Other processes write them at any time. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t none[2], *faults = none;

__attribute__((constructor)) static void attach(void) {
  const char *path = getenv("FAULTS");
  int handle = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (handle < 0) return;
  void *map = mmap(0, sizeof none, PROT_READ, MAP_SHARED, handle, 0);
  if (map != MAP_FAILED) faults = map;
  close(handle);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = REAL(clock_gettime);
  int code = real(clock, now);
  if (!code && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    now->tv_sec += faults[0] / 1000000000;
  }
  return code;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec precise;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &precise)) return -1;
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}

static int is_full(int handle) {
  struct stat status;
  if (!faults[1] || fstat(handle, &status) || !S_ISREG(status.st_mode)) return 0;
  errno = ENOSPC;
  return 1;
}

ssize_t write(int handle, const void *data, size_t size) {
  static ssize_t (*real)(int, const void *, size_t);
  if (!real) real = REAL(write);
  return is_full(handle) ? -1 : real(handle, data, size);
}

ssize_t pwrite(int handle, const void *data, size_t size, off_t at) {
  static ssize_t (*real)(int, const void *, size_t, off_t);
  if (!real) real = REAL(pwrite);
  return is_full(handle) ? -1 : real(handle, data, size, at);
}

ssize_t pwrite64(int handle, const void *data, size_t size, off64_t at) {
  return pwrite(handle, data, size, at);
}

int posix_fallocate(int handle, off_t at, off_t size) {
  static int (*real)(int, off_t, off_t);
  if (!real) real = REAL(posix_fallocate);
  return is_full(handle) ? ENOSPC : real(handle, at, size);
}

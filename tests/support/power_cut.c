/* Keeps beside each file of a folder what is on the disk for certain: its bytes at the last fsync.
 *
 * Preloaded into a process, it copies a file of $WATCHED to $DISK whenever the file is synced, and
 * follows renames and deletions. After a power cut, $DISK is what may be left at worst. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int on_disk(const char *path, char *copy) {
  const char *watched = getenv("WATCHED"), *disk = getenv("DISK");
  size_t length = watched ? strlen(watched) : 0;
  if (!length || !disk || strncmp(path, watched, length) || path[length] != '/') return 0;
  return snprintf(copy, PATH_MAX, "%s%s", disk, path + length) < PATH_MAX;
}

static void make_parents(char *path) {
  for (char *at = path + 1; (at = strchr(at, '/')); at++) {
    *at = 0;
    mkdir(path, 0755);
    *at = '/';
  }
}

static void keep(int handle) {
  char link[64], path[PATH_MAX], copy[PATH_MAX], block[65536];
  struct stat status;
  snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0 || fstat(handle, &status) || !S_ISREG(status.st_mode)) return;
  path[length] = 0;
  if (!on_disk(path, copy)) return;
  make_parents(copy);
  /* A file that is open for writing only is opened again; SQLite's must not be: closing a second
   * handle would drop its locks. */
  int again = pread(handle, block, 1, 0) < 0 ? open(link, O_RDONLY) : -1;
  int in = again < 0 ? handle : again;
  int out = open(copy, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  off_t at = 0;
  ssize_t count;
  while (out >= 0 && (count = pread(in, block, sizeof block, at)) > 0) {
    if (write(out, block, count) != count) abort();
    at += count;
  }
  if (out >= 0) close(out);
  if (again >= 0) close(again);
}

int fsync(int handle) {
  int (*real)(int) = dlsym(RTLD_NEXT, "fsync");
  int code = real(handle);
  keep(handle);
  return code;
}

int fdatasync(int handle) {
  int (*real)(int) = dlsym(RTLD_NEXT, "fdatasync");
  int code = real(handle);
  keep(handle);
  return code;
}

int rename(const char *from, const char *to) {
  int (*real)(const char *, const char *) = dlsym(RTLD_NEXT, "rename");
  char before[PATH_MAX], after[PATH_MAX];
  int code = real(from, to);
  if (!code && on_disk(from, before) && on_disk(to, after)) {
    make_parents(after);
    real(before, after);
  }
  return code;
}

int unlink(const char *path) {
  int (*real)(const char *) = dlsym(RTLD_NEXT, "unlink");
  char copy[PATH_MAX];
  int code = real(path);
  if (!code && on_disk(path, copy)) real(copy);
  return code;
}

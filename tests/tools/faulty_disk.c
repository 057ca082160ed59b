// A disk that fails on demand, for LD_PRELOAD before the numsim program. Environment:
//   FAULTY_DISK_ROOT    folder whose files are watched; without it nothing happens
//   FAULTY_DISK_SHADOW  folder that receives what a loss of power would leave of it (see below)
//   FAULTY_DISK_STOP    N: the power fails before the N-th operation; the process ends with code 99
//   FAULTY_DISK_BYTES   N: after N bytes the disk is full: writes fail with ENOSPC
//   FAULTY_DISK_NO_SYNC 1: fsync does nothing, as if the program had not called it
// An operation is a call that changes the folder or syncs: open with O_CREAT, write, rename, link, unlink,
// mkdir, ftruncate, fsync and their kind.
//
// SHADOW/bytes/KEY holds the bytes of file KEY at its last fsync, or at the start of the first process.
// SHADOW/names/KEY lists the names in folder KEY at its last fsync, and SHADOW/current/KEY at the end, as lines
// "f KEY NAME" for files and "d KEY NAME" for folders. A KEY is an inode with its time of birth, which tells a
// file from an earlier one with the same inode. SHADOW/root is the KEY of ROOT, SHADOW/count the number of
// operations.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static const char *root, *shadow;
static long stop_at, bytes_left = -1, operations;
static int no_sync;
static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static __thread int inside;  // our own calls are not watched

static void Key(int folder, const char* name, char* key) {
  struct statx found;
  if (statx(folder, name, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME, &found) !=
      0) {
    strcpy(key, "none");
    return;
  }
  sprintf(key,
          "%llu-%lld-%u",
          (unsigned long long)found.stx_ino,
          (long long)found.stx_btime.tv_sec,
          found.stx_btime.tv_nsec);
}

static FILE* Create(const char* part, const char* name) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", shadow, part);
  mkdir(path, 0777);
  snprintf(path, sizeof path, "%s/%s/%s", shadow, part, name);
  return fopen(path, "w");
}

static void SaveBytes(const char* path) {
  char key[80], buffer[1 << 16];
  Key(AT_FDCWD, path, key);
  FILE* from = fopen(path, "r");
  FILE* to = Create("bytes", key);
  if (from != NULL && to != NULL) {
    size_t count;
    while ((count = fread(buffer, 1, sizeof buffer, from)) > 0) fwrite(buffer, 1, count, to);
  }
  if (from != NULL) fclose(from);
  if (to != NULL) fclose(to);
}

static void SaveNames(const char* part, const char* path) {
  char key[80];
  Key(AT_FDCWD, path, key);
  DIR* folder = opendir(path);
  FILE* to = Create(part, key);
  for (struct dirent* entry; folder != NULL && to != NULL && (entry = readdir(folder)) != NULL;) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    Key(dirfd(folder), entry->d_name, key);
    fprintf(to, "%c %s %s\n", entry->d_type == DT_DIR ? 'd' : 'f', key, entry->d_name);
  }
  if (folder != NULL) closedir(folder);
  if (to != NULL) fclose(to);
}

// Saves the names in a folder and in those below it; with `bytes`, the bytes of the files too.
static void SaveTree(const char* part, const char* path, int bytes) {
  SaveNames(part, path);
  DIR* folder = opendir(path);
  for (struct dirent* entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    char inner[PATH_MAX];
    snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
    if (entry->d_type == DT_DIR) SaveTree(part, inner, bytes);
    if (entry->d_type == DT_REG && bytes) SaveBytes(inner);
  }
  if (folder != NULL) closedir(folder);
}

static void SaveEnd(void) {
  SaveTree("current", root, 0);
  FILE* to = Create(".", "count");
  if (to != NULL) {
    fprintf(to, "%ld\n", operations);
    fclose(to);
  }
}

__attribute__((constructor)) static void Begin(void) {
  const char* name = getenv("FAULTY_DISK_ROOT");
  if (name == NULL || strcmp(program_invocation_short_name, "numsim") != 0) return;
  inside = 1;
  root = realpath(name, NULL);
  shadow = getenv("FAULTY_DISK_SHADOW");
  if (getenv("FAULTY_DISK_STOP") != NULL) stop_at = atol(getenv("FAULTY_DISK_STOP"));
  if (getenv("FAULTY_DISK_BYTES") != NULL) bytes_left = atol(getenv("FAULTY_DISK_BYTES"));
  no_sync = getenv("FAULTY_DISK_NO_SYNC") != NULL;
  if (root != NULL && shadow != NULL) {
    char key[80];
    Key(AT_FDCWD, root, key);
    FILE* to = Create(".", "root");
    if (to != NULL) {
      fputs(key, to);
      fclose(to);
    }
    SaveTree("names", root, 1);
  }
  inside = 0;
}

__attribute__((destructor)) static void End(void) {
  if (root == NULL || shadow == NULL) return;
  inside = 1;
  SaveEnd();
}

static int Watched(const char* path) {
  return root != NULL && strncmp(path, root, strlen(root)) == 0;
}

// Writes the path of an open file; returns whether it is watched.
static int WatchedFile(int file, char* path) {
  if (root == NULL || inside) return 0;
  char link[64];
  sprintf(link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, PATH_MAX - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return Watched(path);
}

// Makes a path absolute; returns whether it is watched. The last part need not exist.
static int WatchedPath(const char* name) {
  if (root == NULL || inside || name == NULL) return 0;
  if (name[0] == '/') return Watched(name);
  char path[PATH_MAX], folder[PATH_MAX / 2];
  if (getcwd(folder, sizeof folder) == NULL) return 0;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return Watched(path);
}

// Counts an operation, before which the power may fail. Locks; Done unlocks.
static void Operation(void) {
  pthread_mutex_lock(&mutex);
  if (++operations != stop_at) return;
  inside = 1;
  if (shadow != NULL) SaveEnd();
  _exit(99);
}

static void Done(void) { pthread_mutex_unlock(&mutex); }

// Returns how many of `size` bytes the disk has room for.
static size_t Room(size_t size) {
  if (bytes_left < 0) return size;
  const size_t room = (long)size <= bytes_left ? size : (size_t)bytes_left;
  bytes_left -= (long)room;
  return room;
}

ssize_t write(int file, const void* bytes, size_t size) {
  char path[PATH_MAX];
  if (!WatchedFile(file, path)) return REAL(write)(file, bytes, size);
  Operation();
  const size_t room = Room(size);
  ssize_t written = -1;
  if (room == 0 && size > 0)
    errno = ENOSPC;
  else
    written = REAL(write)(file, bytes, room);
  Done();
  return written;
}

ssize_t writev(int file, const struct iovec* parts, int count) {
  char path[PATH_MAX];
  if (!WatchedFile(file, path)) return REAL(writev)(file, parts, count);
  ssize_t all = 0;
  for (int i = 0; i < count; ++i) {
    const ssize_t written = write(file, parts[i].iov_base, parts[i].iov_len);
    if (written < 0) return all > 0 ? all : written;
    all += written;
    if ((size_t)written < parts[i].iov_len) break;
  }
  return all;
}

#define OPEN(name)                                                  \
  int name(const char* path, int flags, ...) {                      \
    va_list rest;                                                   \
    va_start(rest, flags);                                          \
    const mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0; \
    va_end(rest);                                                   \
    const int watched = flags & O_CREAT && WatchedPath(path);       \
    if (watched) Operation();                                       \
    const int file = REAL(name)(path, flags, mode);                 \
    if (watched) Done();                                            \
    return file;                                                    \
  }
OPEN(open)
OPEN(open64)

#define CHANGE(name, parameters, arguments, path)        \
  int name parameters {                                  \
    if (!WatchedPath(path)) return REAL(name) arguments; \
    Operation();                                         \
    const int result = REAL(name) arguments;             \
    Done();                                              \
    return result;                                       \
  }
CHANGE(rename, (const char* from, const char* to), (from, to), from)
CHANGE(link, (const char* from, const char* to), (from, to), to)
CHANGE(unlink, (const char* path), (path), path)
CHANGE(remove, (const char* path), (path), path)
CHANGE(rmdir, (const char* path), (path), path)
CHANGE(mkdir, (const char* path, mode_t mode), (path, mode), path)
CHANGE(truncate, (const char* path, off_t size), (path, size), path)

int ftruncate(int file, off_t size) {
  char path[PATH_MAX];
  if (!WatchedFile(file, path)) return REAL(ftruncate)(file, size);
  Operation();
  const int result = REAL(ftruncate)(file, size);
  Done();
  return result;
}

int fsync(int file) {
  char path[PATH_MAX];
  if (!WatchedFile(file, path)) return REAL(fsync)(file);
  Operation();
  struct stat found;
  if (shadow != NULL && !no_sync && fstat(file, &found) == 0) {
    inside = 1;
    if (S_ISDIR(found.st_mode))
      SaveNames("names", path);
    else
      SaveBytes(path);
    inside = 0;
  }
  Done();
  return 0;
}

int fdatasync(int file) { return fsync(file); }

// Stands in for what code of g++ 12 and of glibc 2.36 uses and glibc 2.28 lacks (see c++).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>

// Since glibc 2.32: whether the process has one thread, so that libstdc++ may count references without
// atomic instructions. 0 is always right.
__attribute__((visibility("hidden"))) char __libc_single_threaded = 0;

// Since glibc 2.29: the folder in which a program is started. Where the C library has none, the caller gets
// an error and says so.
typedef int AddChdir(void* actions, const char* path);
__attribute__((visibility("hidden"))) int posix_spawn_file_actions_addchdir_np(void* actions,
                                                                               const char* path) {
  AddChdir* const add = (AddChdir*)dlsym(RTLD_NEXT, "posix_spawn_file_actions_addchdir_np");
  return add == 0 ? ENOSYS : add(actions, path);
}

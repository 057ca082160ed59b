#include "tests/fuzz/input_place.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace numsim::fuzz {

namespace fs = std::filesystem;

fs::path FileOf(std::string_view bytes) {
  static const int file = ::memfd_create("fuzzed", MFD_CLOEXEC);
  const bool written = ::ftruncate(file, 0) == 0 && ::pwrite(file, bytes.data(), bytes.size(), 0) ==
                                                        static_cast<ssize_t>(bytes.size());
  if (!written) std::abort();
  return "/proc/self/fd/" + std::to_string(file);
}

Folder::Folder() {
  std::error_code ignored;
  const fs::path memory =
      fs::is_directory("/dev/shm", ignored) ? fs::path("/dev/shm") : fs::temp_directory_path();
  std::string name = (memory / "numsim-fuzz-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) std::abort();
  path_ = name;
}

Folder::~Folder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void Folder::Put(std::string_view name, std::string_view bytes) const {
  fs::create_directories((path_ / name).parent_path());
  std::ofstream(path_ / name, std::ios::binary) << bytes;
}

std::string Folder::Get(std::string_view name) const {
  std::ifstream file(path_ / name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace numsim::fuzz

#include "numsim/io/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "numsim/base/error.h"

namespace numsim {
namespace {

// Largest size per read call; Linux reads at most about twice this much.
constexpr size_t kLargestRead = size_t{1} << 30;

std::string ErrnoText(int code) { return std::generic_category().message(code); }

}  // namespace

InputFile::InputFile(const std::filesystem::path& path) : path_(path) {
  // O_NONBLOCK: opening a pipe without a writer must return, so that the pipe can be refused below.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) throw Error::Format("{}: cannot open: {}", path.string(), ErrnoText(errno));
  struct stat status {};
  const bool regular = ::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode);
  if (!regular) {
    ::close(descriptor_);
    throw Error::Format("{}: not a regular file{}",
                        path.string(),
                        S_ISDIR(status.st_mode) ? " but a directory" : "");
  }
  size_ = static_cast<uint64_t>(status.st_size);
}

InputFile::~InputFile() { ::close(descriptor_); }

void InputFile::Read(uint64_t offset, std::span<std::byte> destination) const {
  while (!destination.empty()) {
    const size_t wanted = std::min(destination.size(), kLargestRead);
    const ssize_t got =
        ::pread(descriptor_, destination.data(), wanted, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error::Format("{}: cannot read: {}", path_.string(), ErrnoText(errno));
    if (got == 0) {
      throw Error::Format("{}: file ends at byte {}, expected {} more bytes",
                          path_.string(),
                          offset,
                          destination.size());
    }
    offset += static_cast<uint64_t>(got);
    destination = destination.subspan(static_cast<size_t>(got));
  }
}

std::string ReadText(const std::filesystem::path& path) {
  const InputFile file(path);
  std::string text(file.Size(), '\0');
  file.Read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace numsim

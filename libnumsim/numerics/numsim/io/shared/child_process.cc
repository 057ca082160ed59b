#include "numsim/io/shared/child_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>

#include "numsim/base/error.h"

extern char** environ;

namespace numsim {
namespace {

class FileActions {
 public:
  FileActions() { posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  posix_spawn_file_actions_t* Get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

// Returns the environment of this process, with `variables` added or replacing variables of the
// same names.
std::vector<std::string> Environment(
    const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<std::string> result;
  for (const auto& [name, value] : variables) result.push_back(name + "=" + value);
  const size_t added = result.size();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    bool replaced = false;
    for (size_t i = 0; i < added; ++i) {
      replaced |= text.starts_with(std::string_view(result[i]).substr(0, result[i].find('=') + 1));
    }
    if (!replaced) result.emplace_back(text);
  }
  return result;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::string ReadToEnd(int descriptor) {
  std::string text;
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t got = ::read(descriptor, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(buffer.data(), static_cast<size_t>(got));
  }
}

int WaitFor(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

std::optional<ChildResult> RunProgram(
    const std::vector<std::string>& argv,
    const std::filesystem::path& directory,
    const std::vector<std::pair<std::string, std::string>>& variables) {
  NUMSIM_CHECK(!argv.empty(), "no program to run");
  std::vector<std::string> arguments = argv;
  std::vector<std::string> environment = Environment(variables);
  FileActions actions;
  // Programs for glibc 2.28 (packaging/toolchain) lack this call where the C library is as old.
  if (posix_spawn_file_actions_addchdir_np(actions.Get(), directory.c_str()) == ENOSYS) {
    return std::nullopt;
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw Error::Format(
        "{}: cannot create a pipe: {}", argv[0], std::generic_category().message(errno));
  }
  posix_spawn_file_actions_addopen(actions.Get(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(actions.Get(), ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(actions.Get(), ends[1], STDERR_FILENO);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child,
                                   argv[0].c_str(),
                                   actions.Get(),
                                   nullptr,
                                   Pointers(arguments).data(),
                                   Pointers(environment).data());
  ::close(ends[1]);
  if (error != 0) {
    ::close(ends[0]);
    if (error == ENOENT && std::filesystem::is_directory(directory)) return std::nullopt;
    throw Error::Format("{}: cannot run it: {}", argv[0], std::generic_category().message(error));
  }
  ChildResult result;
  result.output = ReadToEnd(ends[0]);
  ::close(ends[0]);
  result.exit_code = WaitFor(child);
  return result;
}

}  // namespace numsim

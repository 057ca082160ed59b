#include "tests/apps/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cstdlib>
#include <cstring>
#include <sstream>

#include "numsim/base/error.h"
#include "numsim/io/npy.h"

namespace numsim::apps {
namespace {

// This process's environment with `changes` on top, as NAME=VALUE.
std::vector<std::string> MergedEnvironment(const Environment& changes) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!changes.contains(text.substr(0, text.find('=')))) merged.push_back(text);
  }
  for (const auto& [name, value] : changes) merged.push_back(name + "=" + value);
  return merged;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

std::vector<std::string> Outcome::Lines() const {
  std::vector<std::string> lines;
  std::istringstream stream(out);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

Outcome RunProgram(const std::filesystem::path& directory,
                   const std::vector<std::string>& arguments,
                   const Environment& environment,
                   const std::string& stdout_path) {
  const char* const program = std::getenv("NUMSIM_PROGRAM");
  NUMSIM_CHECK(program != nullptr, "NUMSIM_PROGRAM is not set");
  // Beside the directory, so that a test sees only its own files in it.
  const std::string out_path = stdout_path.empty() ? directory.string() + ".out" : stdout_path;
  const std::string err_path = directory.string() + ".err";
  std::vector<std::string> argv = {"numsim"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  std::vector<std::string> env = MergedEnvironment(environment);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  constexpr int kWrite = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, out_path.c_str(), kWrite, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, err_path.c_str(), kWrite, 0600);
  posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
  pid_t child = 0;
  const int error =
      posix_spawn(&child, program, &actions, nullptr, Pointers(argv).data(), Pointers(env).data());
  posix_spawn_file_actions_destroy(&actions);
  NUMSIM_CHECK(error == 0, "{}: {}", program, std::strerror(error));
  int status = 0;
  NUMSIM_CHECK(waitpid(child, &status, 0) == child, "{}", std::strerror(errno));

  Outcome outcome;
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.err = Contents(err_path);
  std::filesystem::remove(err_path);
  if (stdout_path.empty()) {
    outcome.out = Contents(out_path);
    std::filesystem::remove(out_path);
  }
  return outcome;
}

std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::string ProgramTest::Output(const std::string& words) const {
  const Outcome outcome = Numsim(words);
  EXPECT_EQ(outcome.exit_code, 0) << words << "\n" << outcome.err;
  EXPECT_EQ(outcome.err, "") << words;
  return outcome.out;
}

Array ProgramTest::GetNpy(const std::string& name) const { return ReadNpy(Path(name)); }

void ProgramTest::PutArray(const std::string& name,
                           ElementType type,
                           std::vector<size_t> shape,
                           const void* data,
                           size_t bytes) const {
  Array array;
  array.type = type;
  array.shape = std::move(shape);
  array.bytes.resize(bytes);
  ASSERT_EQ(array.Elements() * ElementBytes(type), bytes) << name;
  if (bytes > 0) std::memcpy(array.bytes.data(), data, bytes);
  WriteNpy(Path(name), array);
}

}  // namespace numsim::apps

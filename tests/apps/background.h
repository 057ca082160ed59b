// Runs the numsim program in the background, for tests that send it signals.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace numsim::apps {

class Background {
 public:
  Background(const std::filesystem::path& directory, std::vector<std::string> arguments)
      : out_(directory.string() + ".background") {
    arguments.insert(arguments.begin(), "numsim");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
    const char* const program = std::getenv("NUMSIM_PROGRAM");
    EXPECT_EQ(posix_spawn(&child_, program, &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
  }

  void Signal(int signal) const { kill(child_, signal); }
  // The exit code, or 128 + the signal that ended it.
  int Wait() {
    int status = 0;
    EXPECT_EQ(waitpid(child_, &status, 0), child_);
    std::ifstream file(out_);
    text_.assign(std::istreambuf_iterator<char>(file), {});
    std::filesystem::remove(out_);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  const std::string& Text() const { return text_; }  // stdout, after Wait

 private:
  std::string out_, text_;
  pid_t child_ = 0;
};

// Waits until the file has that many lines.
inline bool WaitForLines(const std::filesystem::path& path, long lines) {
  for (int i = 0; i < 3000; ++i) {
    std::ifstream file(path);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (std::count(text.begin(), text.end(), '\n') >= lines) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace numsim::apps
